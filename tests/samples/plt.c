/* Calls through the procedure linkage table, into a shared library and the C library. The linker writes the rows for
 * its stubs: one function in `.plt` whose rows repeat every 16 bytes (PC type mask), one for `.plt.got`, where the
 * stub for shared_twice goes, since its address is taken as well, and one for `.plt.sec`. The catalogue has builds
 * for each: lazily bound, bound at the start, and with stubs for indirect branch tracking. */
#include <stdio.h>
#include <string.h>

#include "sample.h"
#include "shared.h"

KEEP int called_back(int value, int extra)
{
    sample_stop(value);
    OPAQUE(value);
    return value + extra;
}

KEEP int through_library(int value, const char *text)
{
    shared_function *taken = shared_twice;
    OPAQUE(taken);
    int result = shared_twice(value) + taken(value);
    result += shared_apply(called_back, value, (int)strlen(text));
    OPAQUE(result);
    return result;
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("plt %d\n", through_library(argc, "text"));
    return 0;
}
