/* Functions that align their stack beyond what their caller gives. On AMD64 the compiler then keeps the CFA in a
 * register (r10) and later in memory below rbp: CFA = r10 + 0, CFA = *(rbp - 16). Only version 3 can say so
 * (flexible functions); earlier assemblers leave these functions out, and a trace has to get past them. */
#include <alloca.h>
#include <stdio.h>

#include "sample.h"

/* More arguments than registers: those on the stack are reached through the register that holds the CFA. */
KEEP int aligned_local(int a, int b, int c, int d, int e, int f, int g, int h)
{
    volatile char room[64] __attribute__((aligned(64)));
    room[a & 15] = (char)b;
    char *more = alloca((size_t)(a + 16));
    USE(more);
    sample_stop(a);
    USE(more);
    return room[a & 15] + c + d + e + f + g + h;
}

#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
KEEP int aligned_entry(int a, int b)
{
    volatile int numbers[4] __attribute__((aligned(32)));
    numbers[a & 3] = b;
    int result = aligned_local(a, b, 3, 4, 5, 6, 7, 8);
    OPAQUE(result);
    return result + numbers[a & 3];
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("realign %d\n", aligned_entry(argc, 2));
    return 0;
}
