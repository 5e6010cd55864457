/* Frames whose offsets need one, two and four bytes in a row. The sizes are large enough for s390x as well, which
 * stores the CFA's offset divided by eight. */
#include <stdio.h>

#include "sample.h"

KEEP int small_frame(int a, int b)
{
    volatile char room[16];
    room[a & 15] = (char)b;
    sample_stop(a);
    return room[a & 15] + a;
}

KEEP int medium_frame(int a, int b)
{
    volatile char room[4000];
    room[a & 15] = (char)b;
    int result = small_frame(a + 1, b);
    OPAQUE(result);
    return room[a & 15] + result;
}

KEEP int large_frame(int a, int b)
{
    volatile char room[400000];
    room[a & 15] = (char)b;
    int result = medium_frame(a + 1, b);
    OPAQUE(result);
    return room[a & 15] + result;
}

int main(void)
{
    printf("offsets %d\n", large_frame(1, 2));
    return 0;
}
