/* Inlined and tail-called functions, which have no frame of their own. A debugger shows them from DWARF's call sites
 * (DW_TAG_inlined_subroutine, DW_TAG_call_site with DW_AT_call_tail_call), and must go on doing so above and below
 * frames that were unwound from SFrame. Optimised builds only: without optimisation there are no tail calls. */
#include <stdio.h>

#include "sample.h"

static inline __attribute__((always_inline)) int inlined_inner(int value)
{
    sample_stop(value);
    OPAQUE(value);
    return value + 1;
}

static inline __attribute__((always_inline)) int inlined_outer(int value)
{
    int result = inlined_inner(value * 2);
    OPAQUE(result);
    return result;
}

/* noinline and not noipa: each function keeps its symbol, and its call stays a direct one. */
__attribute__((noinline)) int real_frame(int value)
{
    int result = inlined_outer(value);
    OPAQUE(result);
    return result;
}

__attribute__((noinline)) int tail_second(int value)
{
    OPAQUE(value);
    return real_frame(value + 2);
}

__attribute__((noinline)) int tail_first(int value)
{
    OPAQUE(value);
    return tail_second(value + 1);
}

int main(int argc, char **argv)
{
    (void)argv;
    int result = tail_first(argc);
    OPAQUE(result);
    printf("tail_inline %d\n", result);
    return 0;
}
