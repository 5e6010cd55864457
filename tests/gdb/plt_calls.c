/* Calls through every kind of stub: puts and strlen are called and have their address taken (.plt.got), the others are
 * only called (.plt, .plt.sec); abs has the first stub. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int sink;
int (*volatile put)(const char *);
size_t (*volatile length)(const char *);

__attribute__((noinline)) int use(const char *text)
{
    int result = 0;
    result += abs(sink - 5);
    result += strlen(text);
    result += atoi(text);
    sink += result;
    result += strlen(text + 1);
    sink += puts(text);
    result += atoi(text);
    return result;
}

int main(void)
{
    put = puts;
    length = strlen;
    int result = use("12");
    result += use("345");
    printf("%d\n", result);
    return 0;
}
