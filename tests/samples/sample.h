/* What every sample has: the function where the tests stop it, and the means to keep the compiler from
 * optimising the frames away that the sample exists for. Compiles with and without a C library. */
#ifndef SAMPLE_H
#define SAMPLE_H

/* A function that stays one, with all its arguments, whatever its callers do. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

/* The value of x is anything, and this point is reached: a call before it cannot become a tail call. */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

/* The memory at p is read and written here, so that it has to exist. */
#define USE(p) __asm__ volatile("" : : "r"(p) : "memory")

/* The tests put their breakpoint here. */
KEEP void sample_stop(int value)
{
    OPAQUE(value);
}

#endif
