/* Functions of less than 256, more than 256 and more than 65,536 bytes: the start addresses of their rows take
 * one, two and four bytes. Each calls on after its filling, and has rows behind it. */
#include <stdio.h>

#include "sample.h"

#ifdef __s390x__
#define NOP "nopr 0"
#else
#define NOP "nop"
#endif
#define FILL(count) __asm__ volatile(".rept " #count "\n\t" NOP "\n\t.endr")

KEEP int short_function(int a, int b)
{
    sample_stop(a);
    OPAQUE(b);
    return a + b;
}

KEEP int long_function(int a, int b)
{
    FILL(400);
    int result = short_function(a + 1, b);
    FILL(100);
    OPAQUE(result);
    return result + a;
}

KEEP int huge_function(int a, int b)
{
    FILL(70000);
    int result = long_function(a + 1, b);
    FILL(100);
    OPAQUE(result);
    return result + a;
}

int main(void)
{
    printf("sizes %d\n", huge_function(1, 2));
    return 0;
}
