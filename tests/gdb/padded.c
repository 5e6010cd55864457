/* Functions with local arrays and without a frame pointer: without unwind data, GDB does not find their callers. */
__attribute__((noinline)) int leaf(int n) { __asm__ volatile(""); return n + 1; }
__attribute__((noinline)) int inner(int n) { volatile char pad[40]; pad[n & 7] = n; return leaf(n) + pad[3]; }
__attribute__((noinline)) int outer(int n) { volatile char pad[72]; pad[n & 7] = n; return inner(n) + pad[1]; }
int main(int argc, char **argv) { volatile char pad[24]; pad[argc & 7] = argc; return outer(argc) + pad[1]; }
