/* A program that waits, or works, twelve frames deep; with LOCAL it prints its own stack by libunwind instead. */
#include <string.h>
#include <unistd.h>
#ifdef LOCAL
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdio.h>
#endif

__attribute__((noipa)) static int innermost(int spin)
{
#ifdef LOCAL
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t offset;
    char name[100];
    int left = 60;

    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        if (!unw_get_proc_name(&cursor, name, sizeof name, &offset))
            puts(name);
    } while (--left && unw_step(&cursor) > 0);
    return spin;
#endif
    for (volatile long count = 0; spin && count < 300000000; count++)
        ;
    (void)!write(1, "ready\n", 6);
    while (!spin)
        pause();
    return 0;
}

__attribute__((noipa)) static int down(int depth, int spin)
{
    char room[40];

    memset(room, depth, sizeof room);
    return (depth ? down(depth - 1, spin) : innermost(spin)) + room[depth];
}

int main(int count, char **arguments)
{
    (void)arguments;
    return down(10, count > 1) & 1;
}
