/* Functions for a program without CFI: with saved registers, a stack that is aligned, and one whose size varies. */

volatile int depth = 3;
volatile long sink;

__attribute__((noinline, noclone)) void stop_here(void)
{
    sink++;
}

__attribute__((noinline, noclone)) long aligned(long value)
{
    long buffer[8] __attribute__((aligned(64)));
    for (int i = 0; i < 8; i++)
        buffer[i] = value + i;
    sink = (long)buffer;
    stop_here();
    return buffer[depth & 7];
}

__attribute__((noinline, noclone)) long varied(long size)
{
    char *area = __builtin_alloca(size);
    area[0] = 1;
    sink = (long)area;
    return aligned(size) + area[0];
}

__attribute__((noinline, noclone)) long descend(int level, long a, long b)
{
    long here = a * 3 + b;
    if (level > 0)
        here += descend(level - 1, here, a) * 5 + a;
    else
        here += varied(100 + depth);
    return here + b;
}

int main(void)
{
    return (int)(descend(depth, 1, 2) & 1);
}
