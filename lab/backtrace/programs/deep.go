// A goroutine that is locked to its thread waits 20 calls deep; prints "ready".
package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

//go:noinline
func deep(left int) int {
	if left > 0 {
		return deep(left-1) + 1
	}
	return wait()
}

//go:noinline
func wait() int {
	var set [2]int
	syscall.Syscall(syscall.SYS_PAUSE, 0, 0, 0)
	return set[0]
}

func main() {
	go func() {
		runtime.LockOSThread()
		deep(20)
	}()
	time.Sleep(time.Second)
	fmt.Println("ready")
	deep(20)
}
