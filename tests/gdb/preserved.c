/* Callers with all callee-saved registers in use, whose values show in the output. */
#include <stdio.h>

__attribute__((noinline)) long leaf(long a)
{
    __asm__ volatile("" ::: "memory");
    return a + 1;
}

__attribute__((noinline)) long callee(long a, long b)
{
    long s1 = a * 3, s2 = b * 5, s3 = a ^ b, s4 = a - b, s5 = a * b;
    s1 += leaf(s2);
    s2 += leaf(s3);
    s3 += leaf(s4);
    s4 += leaf(s5);
    s5 += leaf(s1);
    return s1 + s2 * 3 + s3 * 5 + s4 * 7 + s5 * 11;
}

int main(int argc, char **argv __attribute__((unused)))
{
    long x = argc * 100, y = argc * 200, z = argc * 300, w = argc * 400;
    for (int i = 0; i < 3; i++) {
        long r = callee(x + i, y + i);
        printf("i=%d r=%ld x=%ld y=%ld z=%ld w=%ld\n", i, r, x, y, z, w);
        fflush(stdout);
        x += leaf(r) & 0;
        y += leaf(z) & 0;
        z += leaf(w) & 0;
        w += leaf(x) & 0;
    }
    return 0;
}
