/* A program that waits in its innermost function. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noipa)) int inner(int seconds)
{
    puts("ready");
    fflush(stdout);
    return (int)sleep((unsigned)seconds);
}

__attribute__((noipa)) int outer(int seconds)
{
    return inner(seconds) + 1;
}

int main(int count, char **arguments)
{
    (void)arguments;
    return outer(count > 1 ? 3600 : 0) == 0;
}
