/* alloca and variable-length arrays: sp moves by an amount that no table knows, so the CFA has to be found from
 * FP (AMD64 rbp, AArch64 x29, s390x r11). */
#include <alloca.h>
#include <stdio.h>
#include <string.h>

#include "sample.h"

KEEP int with_vla(int size, int value)
{
    char array[size];
    memset(array, value, (size_t)size);
    USE(array);
    sample_stop(array[size - 1]);
    USE(array);
    return array[size / 2];
}

KEEP int with_alloca(int size, int value)
{
    char *first = alloca((size_t)size);
    memset(first, value, (size_t)size);
    USE(first);
    /* A second one after a branch: sp differs between two runs of the same instruction. */
    if (value > 1) {
        char *second = alloca((size_t)size * 3);
        memset(second, value, (size_t)size * 3);
        USE(second);
    }
    int result = with_vla(size + 7, value);
    USE(first);
    return result + first[0];
}

int main(void)
{
    int result = with_alloca(100, 2);
    OPAQUE(result);
    printf("dynamic %d\n", result);
    return 0;
}
