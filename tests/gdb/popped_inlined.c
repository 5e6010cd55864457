/* A function that was inlined calls another one, and the function around it keeps a value in a register. */
volatile int sink;
__attribute__((noinline, noclone)) int leaf(int x) { sink += x; return x; }
__attribute__((noinline, noclone)) int inner(int a) { int k = a * 3; int l = leaf(a); return l + k; }
static inline __attribute__((always_inline)) int inlined(int a) { int t = inner(a); sink += t; return t; }
__attribute__((noinline, noclone)) int user(int n) { int keep = n * 1000; int r = inlined(n); return keep + r; }
int main(void) { return user(7) == 1; }
