/* Something of everything in a few thousand instructions, in one thread, to be stepped through instruction by
 * instruction: at each one the frames are compared. It does without printf, whose path is long and not the sample's. */
#include <alloca.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"

KEEP int leaf(int a, int b)
{
    return a * 5 - b;
}

KEEP int leaf_with_stack(int a)
{
    volatile int numbers[12];
    for (int i = 0; i < 4; i++)
        numbers[i] = a + i;
    return numbers[a & 3];
}

KEEP int recurse(int level, int depth)
{
    int result = level < depth ? recurse(level + 1, depth) : leaf(level, depth);
    OPAQUE(result);
    return result;
}

/* Enough live values for every register that a function has to save. */
KEEP int many_registers(int a, int b, int c, int d, int e, int f)
{
    int first = leaf(a, b), second = leaf(c, d), third = leaf(e, f);
    int fourth = leaf(first, second), fifth = leaf(second, third);
    int sixth = leaf(first, fifth);
    return a + b + c + d + e + f + first + second + third + fourth + fifth + sixth;
}

KEEP int with_alloca(int size, int value)
{
    char *room = alloca((size_t)size);
    memset(room, value, (size_t)size);
    USE(room);
    int result = leaf(room[0], size);
    OPAQUE(result);
    return result;
}

KEEP int with_vla(int size)
{
    char source[size], copy[size];
    for (int i = 0; i < size; i++)
        source[i] = 'x';
    source[size - 1] = '\0';
    USE(source);
    memcpy(copy, source, (size_t)size);
    USE(copy);
    return (int)strlen(copy);
}

/* A way out in the middle: the rows after it go back to those of the frame. */
KEEP int early_exit(int a, int b)
{
    volatile int numbers[6];
    numbers[a & 3] = b;
    if (a < 3)
        return numbers[a & 3];
    int result = leaf(a, b);
    OPAQUE(result);
    if (result < 0)
        return leaf_with_stack(result);
    return result + numbers[a & 3];
}

KEEP int select_case(int which, int value)
{
    switch (which) {
    case 0: return leaf(value, 1);
    case 1: return leaf_with_stack(value);
    case 2: return value * 3;
    case 3: return early_exit(value, which);
    case 4: return recurse(value, value + 2);
    case 5: return value - 7;
    default: return -1;
    }
}

KEEP int tail(int value)
{
    OPAQUE(value);
    return leaf(value, value);
}

KEEP int stack_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
    int result = leaf(a + b + c + d, e + f + g + h);
    OPAQUE(result);
    return result + i + j;
}

KEEP int large_frame(int value)
{
    volatile char room[5000];
    room[value & 15] = (char)value;
    int result = leaf(value, 3);
    OPAQUE(result);
    return result + room[value & 15];
}

KEEP int apply(int (*function)(int, int), int a, int b)
{
    int result = function(a, b);
    OPAQUE(result);
    return result;
}

KEEP int innermost(int a, int b)
{
    sample_stop(a);
    OPAQUE(b);
    return a + b;
}

KEEP int all(int value)
{
    int sum = apply(innermost, value, 2);
    sum += apply(leaf, value, 2);
    sum += recurse(0, 4);
    sum += many_registers(value, 2, 3, 4, 5, 6);
    sum += with_alloca(40, value);
    sum += with_vla(33);
    for (int which = 0; which < 7; which++)
        sum += select_case(which, value);
    sum += early_exit(2, 9);
    sum += tail(value);
    sum += stack_arguments(value, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    sum += large_frame(value);
    return sum;
}

int main(int argc, char **argv)
{
    static const char text[] = "stepper done\n";
    (void)argv;
    int sum = all(argc);
    OPAQUE(sum);
    return write(1, text, sizeof text - 1) == (long)(sizeof text - 1) ? 0 : 1;
}
