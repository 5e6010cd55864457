/* A function with a frame pointer is interrupted where that is its caller's already: behind `pop %rbp`. */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>

#define OUT_OF_LINE __attribute__((noinline))
enum { UD2 = 2 };

static volatile int total;

OUT_OF_LINE void note(int number) { total += number; }

/* Called by nobody; a test takes its CFI away. */
OUT_OF_LINE int other(int number)
{
    note(number);
    return total + number;
}

static void handler(int number, siginfo_t *info, void *context)
{
    note(number);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += UD2;
}

void leaving(void);
__asm__(".text\n"
        ".globl leaving\n"
        ".type leaving, @function\n"
        "leaving:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register rbp\n"
        "nop\n"
        "pop %rbp\n"
        ".cfi_def_cfa rsp, 8\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size leaving, . - leaving\n");

OUT_OF_LINE int caller(int depth)
{
    if (depth == 0)
        leaving();
    else
        caller(depth - 1);
    return total + depth;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = handler;
    sigaction(SIGILL, &action, 0);
    return (caller(1) + (argc > 9 ? other(argc) : 0)) & 1;
}
