/* A library whose function calls back. */
__attribute__((noinline)) static int inner(int (*back)(int), int n) { int result = back(n); return result + n; }
int plug(int (*back)(int), int n) { int result = inner(back, n); return result * 2; }
