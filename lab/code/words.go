// Counts words of its input: the runtime and the formatting that programs in Go have.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
)

func main() {
	counts := map[string]int{}
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Split(bufio.ScanWords)
	for scanner.Scan() {
		counts[scanner.Text()]++
	}
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	sort.Strings(words)
	for _, word := range words {
		fmt.Println(counts[word], word)
	}
}
