/* Functions with several blocks, whose stack pointer differs from block to block.  BOLT can reorder the blocks, and then
   rows for the old order are wrong.  With a number as argument, the program says `ready` and waits in that call of
   `stop_here`.  SPINS is how long each call works.  With BY_HAND, the calls in `work` are where the rows for the old order
   are wrong whatever the compiler: in either block, at a depth that the other block had there. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef SPINS
#define SPINS 0
#endif

volatile int sink, waits;

__attribute__((noinline)) int stop_here(int value)
{
    sink += value;
    for (int i = 0; i < SPINS; i++)
        sink += i;
    if (waits && !--waits) {
        puts("ready");
        fflush(stdout);
        pause();
    }
    return sink & 1;
}

#ifdef BY_HAND
int work(int a, int b);
__asm__(".text\n"
        ".globl work\n"
        ".type work, @function\n"
        "work:\n"
        ".cfi_startproc\n"
        "test $1, %dil\n"
        "je 1f\n"
        "sub $152, %rsp\n"
        ".cfi_def_cfa_offset 160\n"
        "call stop_here\n"
        "add $152, %rsp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        "1: sub $8, %rsp\n"
        ".cfi_def_cfa_offset 16\n"
        "call stop_here\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size work, . - work\n");
#else
__attribute__((noinline)) int work(int a, int b)
{
    volatile int buffer[40];
    buffer[a & 31] = b;
    if (a & 1) {
        buffer[1] = stop_here(a);
        if (buffer[1] == 77)
            return 5;
        buffer[2] = stop_here(b);
        return buffer[a & 31];
    }
    buffer[3] = stop_here(a + b);
    if (b & 1)
        return buffer[4 & a];
    return buffer[3] + stop_here(buffer[2]);
}
#endif

__attribute__((noinline)) int outer(int n, int m)
{
    if (n < 0)
        return work(-n, m) + 1;
    if (m < 3)
        return 7;
    return work(n, m) - 1;
}

int main(int count, char **names)
{
    int result = 0;
    waits = count > 1 ? atoi(names[1]) : 0;
    for (int i = -9; i < 10; i++) {
        result += outer(i, i & 7);
    }
    printf("%d\n", result);
    return 0;
}
