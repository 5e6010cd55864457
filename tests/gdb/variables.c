/* Functions with arguments and locals in callee-saved registers, in two parts; they need no C library. */
int middle(const int *p, int n, int k);

#ifndef OUTER_PART
__attribute__((noinline)) int leaf(const int *p, int n)
{
    return p[n - 1] + n;
}

__attribute__((noinline)) int middle(const int *p, int n, int k)
{
    int sum = 0;
    for (int i = 1; i <= n; i++)
        sum += leaf(p, i) * k;
    return sum;
}
#endif

#ifndef INNER_PART
static int values[5] = {2, 3, 5, 7, 11};

__attribute__((noinline)) int outer(int n, int k)
{
    for (int i = 0; i < n; i++)
        values[i] ^= middle(values, n, k);
    return values[0] + n;
}

int main(int argc, char **argv __attribute__((unused)))
{
    int found = outer(5, argc);
    return (outer(4, argc + 1) + found) & 1;
}

#ifdef FREESTANDING
__asm__(".globl _start\n"
        "_start: xor %ebp, %ebp\n"
        "        mov $1, %edi\n"
        "        call main\n"
        "        xor %edi, %edi\n"
        "        mov $60, %eax\n"
        "        syscall\n");
#endif
#endif
