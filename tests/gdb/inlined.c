/* Inlined functions to `step` into: GDB then shows one frame more, without anything having run. */
#define INLINED static inline __attribute__((always_inline))
#define OPAQUE(x) __asm__ volatile("nop" : "+r"(x))

INLINED int inner(int value)
{
    OPAQUE(value);
    value += 1;
    OPAQUE(value);
    return value;
}

INLINED int outer(int value)
{
    int result = inner(value);
    OPAQUE(result);
    return result;
}

__attribute__((noinline)) int last(int value)
{
    int result = outer(value);
    OPAQUE(result);
    return result + outer(result);
}

__attribute__((noinline)) int tail(int value)
{
    value = inner(value);
    return last(value);
}

int main(int argc, char **argv)
{
    int result = 0;
    (void)argv;
    for (int i = 0; i < 2; i++) {
        result += tail(argc + i);
        OPAQUE(result);
        result += inner(result);
    }
    return result == 0;
}
