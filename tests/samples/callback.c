/* A callback through the C library, which has no SFrame: frames with SFrame on both sides of one without. */
#include <stdio.h>
#include <stdlib.h>

#include "sample.h"

static int comparisons;

KEEP int compare(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    if (comparisons++ == 0)
        sample_stop(a);
    return (a > b) - (a < b);
}

KEEP int sort(int *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    OPAQUE(count);
    return numbers[0] * count;
}

int main(void)
{
    int numbers[] = {5, 3, 8, 1, 9, 2};
    int result = sort(numbers, 6);
    OPAQUE(result);
    printf("callback %d\n", result);
    return 0;
}
