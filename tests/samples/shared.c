/* A shared library: SFrame in a second module, whose addresses are known only when it is loaded. */
#include "shared.h"

#define KEEP __attribute__((noinline))
#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

KEEP int shared_twice(int value)
{
    return value * 2;
}

static KEEP int inside(shared_callback *callback, int value, int extra)
{
    volatile int numbers[40];
    numbers[value & 31] = extra;
    int result = callback(value, numbers[value & 31]);
    OPAQUE(result);
    return result;
}

int shared_apply(shared_callback *callback, int value, int extra)
{
    int result = inside(callback, shared_twice(value), extra);
    OPAQUE(result);
    return result;
}
