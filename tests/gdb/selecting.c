/* A function that fails, and two callers: a breakpoint's commands select one of these. */
int sink;
__attribute__((noinline)) void check_failed(int n) { sink += n; }
__attribute__((noinline)) void check(int n) { int why = n * 2; check_failed(why); sink++; }
int main(void) { int state = 42; check(state); check(state + 1); return 0; }
