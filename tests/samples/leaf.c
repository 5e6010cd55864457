/* Functions that call none: the return address is never saved on AArch64 and s390x, and on AMD64 the row at the
 * function's first instruction (CFA = sp+8) serves throughout. They are reached by a chain of ordinary frames;
 * a test steps into the leaf from sample_stop, or sets its breakpoint there. */
#include <stdio.h>

#include "sample.h"

KEEP int leaf_without_stack(int a, int b)
{
    return a * 3 + b;
}

KEEP int leaf_with_stack(int a, int b)
{
    volatile int numbers[16];
    for (int i = 0; i < 16; i++)
        numbers[i] = a + i;
    return numbers[b & 15];
}

KEEP int inner(int a, int b)
{
    int sum = a + b;
    sample_stop(sum);
    sum += leaf_without_stack(a, b) + leaf_with_stack(a, b);
    OPAQUE(sum);
    return sum;
}

KEEP int outer(int a)
{
    int result = inner(a, a + 1);
    OPAQUE(result);
    return result;
}

int main(void)
{
    printf("leaf %d\n", outer(5));
    return 0;
}
