/* A program that continues on a stack of the heap, and then on its own stack again, which has its caller at a lower
   address. */
#include <stdlib.h>

volatile int sink;
void on_stack(void (*function)(void), void *top);
static char *own;

__attribute__((noinline)) void reached(void) { sink = 1; }

__attribute__((noinline)) void second(void)
{
    reached();
    sink = 2;
}

__attribute__((noinline)) void first(void)
{
    on_stack(second, own);
    sink = 3;
}

int main(void)
{
    volatile char kept[1 << 16];
    kept[0] = 1;
    own = (char *)kept + (1 << 15);
    char *heap = malloc(1 << 16);
    on_stack(first, heap + (1 << 15));
    return kept[0] - 1;
}
