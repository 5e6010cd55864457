/* Deep recursion, direct and through a second function, so that frames of two sizes alternate. The depth is the
 * first argument: a few frames to look at, or many thousand for the cost of a frame. */
#include <stdio.h>
#include <stdlib.h>

#include "sample.h"

int descend(int level, int depth);

KEEP int descend_wide(int level, int depth)
{
    volatile int numbers[8];
    numbers[level & 7] = level;
    int result = descend(level + 1, depth);
    OPAQUE(result);
    return result + numbers[level & 7] - level;
}

KEEP int descend(int level, int depth)
{
    int result;
    if (level >= depth) {
        sample_stop(level);
        result = 0;
    } else {
        result = level % 4 == 3 ? descend_wide(level, depth) : descend(level + 1, depth);
    }
    OPAQUE(result);
    return result + 1;
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 12;
    /* descend_wide takes a level too, but adds nothing. */
    printf("recursion %d\n", descend(0, depth) > 0);
    return 0;
}
