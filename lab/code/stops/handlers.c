/* Functions to which only stored pointers lead: a table of handlers, constructors, a handler of a signal from the
 * table, and a function that runs at exit. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone))
volatile long sink;
NOINLINE long leaf(long n) { sink += n; return sink & 7; }
static NOINLINE long twice(long n) { char room[48]; memset(room, (int)n, sizeof room); return leaf(n) + leaf(n + 1) + room[n & 7]; }
static NOINLINE long varying(long n) { char *room = __builtin_alloca(n * 16 + 16); memset(room, 1, n); return twice(n) + room[n]; }
static NOINLINE long chosen(long n)
{
    switch (n & 7) {
    case 0: return leaf(3) + 1;
    case 1: return twice(n) * 3;
    case 2: return leaf(n) - 1;
    case 3: return leaf(n + 2) ^ n;
    case 4: return varying(n) + 2;
    case 5: return twice(n) - n;
    default: return n;
    }
}
static NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    return leaf(a + h) + b * c + d * e + f * g + twice(a);
}
static NOINLINE long with_many(long n) { return many(n, 1, 2, 3, 4, 5, 6, leaf(n)) + 1; }
static void on_signal(int number) { sink += twice(number & 3); }
static void at_exit(void) { sink += varying(2); }
static void before_main(void) { sink += twice(1); }
__attribute__((section(".init_array"), used)) static void (*const constructor)(void) = before_main;
struct command {
    const char *name;
    long (*run)(long);
};
static const struct command commands[] = {
    {"twice", twice}, {"varying", varying}, {"chosen", chosen}, {"many", with_many}, {"leaf", leaf},
};
struct hooks {
    void (*signal)(int);
    void (*exit)(void);
};
static const struct hooks hooks = {on_signal, at_exit};
static NOINLINE long dispatch(const char *name, long n)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(commands[i].name, name))
            return commands[i].run(n) + 1;
    return 0;
}
int main(int argc, char **argv)
{
    static const char *const names[] = {"chosen", "varying", "many", "twice"};
    const struct hooks *volatile chosen_hooks = &hooks;
    atexit(chosen_hooks->exit);
    signal(SIGUSR1, chosen_hooks->signal);
    long total = 0;
    for (long i = 0; i < 12; i++) {
        total += dispatch(argc > 1 ? argv[1] : names[i & 3], i);
        if (i == 5)
            raise(SIGUSR1);
    }
    printf("%ld\n", total);
    return 0;
}
