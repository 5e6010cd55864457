#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#define NOINLINE __attribute__((noinline,noclone))
volatile long sink;
NOINLINE void leaf(long n) { sink += n; }
NOINLINE long inner(long n, char *buf) { char local[64]; memset(local, n, sizeof local); leaf(n); sink += local[n & 63]; return buf[0] + n + local[1]; }
NOINLINE long middle(long a, long b, long c) {
  char buf[400]; long x = inner(a + b, buf); long y = inner(b + c, buf + 1);
  return x * y + a * b * c + buf[3];
}
static int compare(const void *a, const void *b) { long x = *(const long *)a, y = *(const long *)b; leaf(x); return x < y ? -1 : x > y; }
NOINLINE long sorting(long n) { long v[20]; for (int i = 0; i < 20; i++) v[i] = (i * 7919 + n) % 101; qsort(v, 20, sizeof *v, compare); return v[3]; }
NOINLINE long varying(long n) { char *p = __builtin_alloca(n * 16 + 16); memset(p, 1, n); long r = middle(n, n + 1, p[0]); return r + p[n]; }
NOINLINE long recurse(long n) { if (n == 0) return varying(5); return recurse(n - 1) + sorting(n); }
int main(int argc, char **argv) { long t = 0; for (long i = 0; i < (argc > 1 ? atol(argv[1]) : 3); i++) t += recurse(5); printf("%ld\n", t); return 0; }
