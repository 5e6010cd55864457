/* One function in two parts, and functions without padding between them. */
#include <stdio.h>

static volatile int sink;

__attribute__((noinline, cold)) void report(int x)
{
    sink += x;
}

__attribute__((noinline)) int parted(int n, const int *a)
{
    volatile int total = 0;
    int local = 7;
    for (int i = 0; i < n; i++) {
        if (__builtin_expect(a[i] < 0, 0)) {
            report(i);
            local += sink;
            total += local;
            report(total & 1);
            local ^= a[i];
        }
        total += a[i] * local;
    }
    return total;
}

int main(int argc, char **argv __attribute__((unused)))
{
    int a[] = {1, 2, -1, 3, -2, argc};
    printf("%d\n", parted(6, a));
    return 0;
}
