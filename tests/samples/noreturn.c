/* A call to a function that never returns is the last instruction of its caller: the return address lies in the
 * next function, or in no function at all. An unwinder that looks up the return address itself, and not the
 * byte before it, finds the wrong row there. neighbour has a very different frame for the same reason; the build
 * aligns functions to nothing and keeps their order, so that it follows directly. */
#include <stdio.h>
#include <stdlib.h>

#include "sample.h"

KEEP __attribute__((noreturn)) void leave(int code, int stop)
{
    sample_stop(stop);
    printf("noreturn %d\n", stop);
    exit(code);
}

KEEP void last_call(int a, int b)
{
    volatile int numbers[20];
    numbers[a & 15] = b;
    leave(0, numbers[a & 15]);
}

KEEP int neighbour(int a, int b)
{
    return a - b;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1000)
        return neighbour(argc, 2);
    last_call(argc, 7);
    return 1;
}
