/* A recursion of a depth that the first argument gives, or without end; with SFrame alone where ALONE is defined.
   RECURSION and MAIN choose a part of the program, for an object file of its own. */
#include <stdlib.h>

#ifdef ALONE
__asm__(".cfi_sections .sframe");
#endif

#ifdef MAIN
int descend(int n);
#else
volatile int sink;

__attribute__((noinline)) int reached(int n)
{
    sink = n;
    return n + 1;
}

__attribute__((noinline)) int descend(int n)
{
    volatile int kept[2];
    kept[0] = n;
    if (n == 0)
        return reached(n);
    int inner = descend(n - 1);
    return inner + kept[0];
}

#endif
#ifndef RECURSION
int main(int argc, char **argv)
{
    return descend(argc > 1 ? atoi(argv[1]) : -1);
}
#endif
