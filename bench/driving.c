/* What debuggers are measured moving through: the argument says what it does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile long sum;

__attribute__((noipa)) void hit(int number)
{
    sum += number;
}

__attribute__((noipa)) static void middle(int number)
{
    hit(number);
    sum ^= 1;
}

__attribute__((noipa)) static int step(int number)
{
    int local = number * 3;
    middle(local);
    middle(number);
    local += (int)sum & 7;
    return local;
}

__attribute__((noipa)) void loaded(int number)
{
    sum += number;
}

static int load(const char *folder, int count)
{
    char path[4096];
    for (int number = 0; number < count; number++) {
        snprintf(path, sizeof path, "%s/lib%d.so", folder, number);
        if (!dlopen(path, RTLD_NOW))
            return 1;
        loaded(number);
    }
    return 0;
}

static int reload(const char *folder, int count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/lib0.so", folder);
    for (int number = 0; number < count; number++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library)
            return 1;
        loaded(number);
        dlclose(library);
    }
    return 0;
}

__attribute__((noipa)) void done(void)
{
    sum = 0;
}

__attribute__((noipa)) static int descend(int level, int count)
{
    int result = 0;
    if (level)
        result = descend(level - 1, count) + 1;
    else
        for (int number = 0; number < count; number++)
            result += step(number);
    if (!level)
        done();
    sum += result;
    return result;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "load"))
        return load(argv[2], atoi(argv[3]));
    if (argc == 4 && !strcmp(argv[1], "reload"))
        return reload(argv[2], atoi(argv[3]));
    return argc != 3 || !descend(atoi(argv[1]), atoi(argv[2]));
}
