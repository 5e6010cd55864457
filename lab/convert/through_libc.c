/* The C library most of the time: sorting with a callback, formatting, conversions, memory, a regular expression, and a
 * signal whose handler does some of it again. */
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char text[512];

static int by_value(const void *one, const void *other)
{
    return *(const int *)one - *(const int *)other;
}

static void sort(void)
{
    int numbers[24];
    for (int i = 0; i < 24; i++)
        numbers[i] = i * 37 % 24;
    qsort(numbers, 24, sizeof *numbers, by_value);
    int wanted = 7;
    bsearch(&wanted, numbers, 24, sizeof *numbers, by_value);
}

static void handler(int number)
{
    snprintf(text, sizeof text, "signal %d", number);
    sort();
}

static void match(void)
{
    regex_t pattern;
    regmatch_t found[3];
    if (regcomp(&pattern, "([a-z]+) ([0-9]+)", REG_EXTENDED) == 0) {
        regexec(&pattern, "--- abc 123 ---", 3, found, 0);
        regfree(&pattern);
    }
}

static void convert(void)
{
    double number = strtod("2.718281828459045", NULL);
    snprintf(text, sizeof text, "%.17g %#x %s %Lf", number, 0xbeef, "string", (long double)number);
    time_t then = 1000000000;
    struct tm parts;
    gmtime_r(&then, &parts);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
}

int main(void)
{
    signal(SIGUSR1, handler);
    for (int round = 0; round < 100; round++) {
        sort();
        convert();
        char *copy = strdup(text);
        raise(SIGUSR1);
        match();
        free(copy);
    }
    puts("done");
    return 0;
}
