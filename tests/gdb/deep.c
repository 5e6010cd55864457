/* Deep stacks of several kinds; the first argument chooses one, the second one is the number of levels. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noipa))
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))

static int levels;

KEEP int stop(int value)
{
    OPAQUE(value);
    return value;
}

KEEP int plain(int level)
{
    volatile char room[8 + (level & 24)]; /* the frames use FP */
    room[0] = (char)level;
    int result = level ? plain(level - 1) : stop(level);
    return result + room[0];
}

KEEP int inlined(int level);

static inline __attribute__((always_inline)) int between(int level)
{
    int result = inlined(level - 1);
    OPAQUE(result);
    return result;
}

KEEP int inlined(int level)
{
    int result = level ? between(level) : stop(level);
    return result + level;
}

static void handler(int number)
{
    plain(levels + number);
}

KEEP int interrupted(int level)
{
    int result = level ? interrupted(level - 1) : raise(SIGUSR1);
    return result + level;
}

KEEP int through_library(int level);

static int compare(const void *one, const void *other)
{
    (void)other;
    return through_library(*(const int *)one - 1);
}

KEEP int through_library(int level)
{
    int numbers[] = {level, level};
    if (level)
        qsort(numbers, 2, sizeof(int), compare);
    else
        stop(level);
    return numbers[0] + level;
}

int main(int argc, char **argv)
{
    levels = argc > 2 ? atoi(argv[2]) : 300;
    const char *kind = argc > 1 ? argv[1] : "plain";
    int result = 0;
    if (strcmp(kind, "plain") == 0)
        result = plain(levels) + plain(levels);
    else if (strcmp(kind, "inlined") == 0)
        result = inlined(levels);
    else if (strcmp(kind, "library") == 0)
        result = through_library(levels);
    else if (strcmp(kind, "signal") == 0) {
        signal(SIGUSR1, handler);
        result = interrupted(levels);
    }
    return result == 0;
}
