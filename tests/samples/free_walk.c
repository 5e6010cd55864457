/* The kinds of frames that differ between ABIs, without a C library, so that it builds wherever there is a compiler:
 * a leaf, recursion, alloca, frames with offsets of one, two and four bytes, a callback through a pointer. Every frame
 * of it has SFrame, up to the outermost, where the return address is undefined. */
#include "sample.h"

#include "free.h"

KEEP int leaf(int a, int b)
{
    return a * 3 + b;
}

KEEP int innermost(int a, int b)
{
    sample_stop(a);
    int result = leaf(a, b);
    OPAQUE(result);
    return result;
}

KEEP int large_frame(int a, int b)
{
    volatile char room[400000];
    room[a & 15] = (char)b;
    int result = innermost(a, b);
    OPAQUE(result);
    return result + room[a & 15];
}

KEEP int medium_frame(int a, int b)
{
    volatile char room[4000];
    room[a & 15] = (char)b;
    int result = large_frame(a, b);
    OPAQUE(result);
    return result + room[a & 15];
}

KEEP int with_alloca(int size, int value)
{
    char *room = __builtin_alloca((unsigned long)size);
    room[size - 1] = (char)value;
    USE(room);
    int result = medium_frame(size, value);
    USE(room);
    return result + room[size - 1];
}

KEEP int apply(int (*function)(int, int), int a, int b)
{
    int result = function(a, b);
    OPAQUE(result);
    return result;
}

KEEP int descend(int level, int depth)
{
    int result = level < depth ? descend(level + 1, depth) : apply(with_alloca, 20, level);
    OPAQUE(result);
    return result + 1;
}

int free_main(const long *arguments)
{
    int depth = free_number(arguments, 6);
    int result = descend(0, depth);
    OPAQUE(result);
    FREE_PRINT("free_walk done\n");
    return 0;
}
