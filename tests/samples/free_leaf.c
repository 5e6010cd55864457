/* Leaf functions under register pressure. On s390x (z10 and later, -O2) the compiler saves r11 and r14 not on the stack
 * but in floating-point registers, since nothing is called that could change those. A test cannot stop such
 * a function by a call, so a label inside it, sample_in_leaf, is where its breakpoint goes. */
#include "sample.h"

#include "free.h"

KEEP long busy_leaf(long a, long b)
{
#if defined __s390x__
    __asm__ volatile("" : : : "r6", "r7", "r8", "r9", "r10", "r11", "r14");
#elif defined __aarch64__
    __asm__ volatile("" : : : "x19", "x20", "x21", "x30");
#elif defined __x86_64__
    __asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
#endif
    __asm__ volatile(".globl sample_in_leaf\nsample_in_leaf:" : "+r"(a), "+r"(b) : : "memory");
    return a * b;
}

/* r14 alone: no frame at all besides. */
KEEP long busy_return_address(long a, long b)
{
#if defined __s390x__
    __asm__ volatile("" : : : "r14");
#endif
    OPAQUE(a);
    return a - b;
}

KEEP long around(long a, long b)
{
    sample_stop((int)a);
    long result = busy_leaf(a, b) + busy_return_address(a, b);
    OPAQUE(result);
    return result;
}

int free_main(const long *arguments)
{
    long result = around(arguments[0], 3);
    OPAQUE(result);
    FREE_PRINT("free_leaf done\n");
    return 0;
}
