/* Calls that return to adjoining lines, from two callers, in loops: what commands that move the program stop in. */
#include <stdio.h>

static volatile int sum;

__attribute__((noinline)) int add(int x)
{
    sum += x;
    return sum;
}

__attribute__((noinline)) int twice(int x)
{
    int once = add(x);
    return once + add(once);
}

__attribute__((noinline)) void red(int x)
{
    add(x);
    sum++;
}

__attribute__((noinline)) void blue(int x)
{
    add(x);
    sum--;
}

__attribute__((noinline)) int counted(void)
{
    volatile int i;
    i = 0;
    twice(1);
    i = 1;
    twice(2);
    i = 2;
    return i;
}

int main(int argc, char **argv __attribute__((unused)))
{
    int n = argc;
    n += twice(n);
    n += twice(n + 1);
    n += counted();
    for (int i = 0; i < 30; i++) {
        if (i % 3)
            red(i);
        else
            blue(i);
    }
    printf("%d\n", n);
    return 0;
}
