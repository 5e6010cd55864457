/* A recursion of a depth that the first argument gives; a second argument: without end. */
#include <stdlib.h>

#ifdef RECURSION
volatile int sink;

__attribute__((noinline)) int reached(int n) { sink = n; return n + 1; }

__attribute__((noinline)) int descend(int n)
{
    volatile int kept[2];
    kept[0] = n;
    if (n == 0)
        return reached(n);
    int inner = descend(n - 1);
    return inner + kept[0];
}
#else
int descend(int n);

int main(int argc, char **argv) { return descend(argc > 2 ? -1 : atoi(argv[1])); }
#endif
