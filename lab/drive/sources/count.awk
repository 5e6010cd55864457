function longest(words, count,    i, best) {
  for (i = 1; i <= count; i++)
    if (length(words[i]) > length(best)) best = words[i]
  return best
}
function factorial(n) { return n < 2 ? 1 : n * factorial(n - 1) }
{
  n = split($0, parts, / +/)
  print NR ": " longest(parts, n), toupper(substr($1, 1, 3)), factorial(n)
  for (i = 1; i < n; i++) seen[parts[i]]++
  gsub(/[aeiou]/, "<&>")
  total += $NF
}
END {
  for (word in seen) if (seen[word] > 2) twice++
  printf "%d words, %d often, total %.2f\n", length(seen), twice, total
}
