/* A program whose only unwind data is SFrame: the builder tells the assembler to write no .eh_frame and no .debug_frame
 * for it (.cfi_sections .sframe). The start-up files and the linker's stubs still bring an .eh_frame, which covers none
 * of these functions. */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

KEEP int compare(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    OPAQUE(a);
    return (a > b) - (a < b);
}

KEEP int innermost(int a, int b)
{
    volatile int numbers[100];
    numbers[a & 63] = b;
    sample_stop(a);
    return numbers[a & 63] + a;
}

KEEP int with_alloca(int size, int value)
{
    char *room = alloca((size_t)size);
    memset(room, value, (size_t)size);
    USE(room);
    int result = innermost(size, value);
    USE(room);
    return result + room[0];
}

KEEP int descend(int level, int depth)
{
    int result = level < depth ? descend(level + 1, depth) : with_alloca(level * 10, depth);
    OPAQUE(result);
    return result + 1;
}

int main(int argc, char **argv)
{
    int numbers[] = {4, 2, 3};
    int depth = argc > 1 ? atoi(argv[1]) : 6;
    qsort(numbers, 3, sizeof *numbers, compare);
    printf("sframe_only %d\n", descend(0, depth) > 0 && numbers[0] == 2);
    return 0;
}
