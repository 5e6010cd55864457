/* Signals: the frame that one interrupts is looked up with its exact pc, and the kernel's frame between it and the
 * handler is not in a function. The first argument chooses how it comes: `raise` (the default) and `kill` from within
 * the C library, `fault` at an instruction of the program, `altstack` and `above` the same with the handler on another
 * stack, which with `above` is higher up than the interrupted frame, so that the CFA jumps back there, and `entry` at
 * a function's first instruction, where a lookup of pc - 1 finds another function. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"

static sigjmp_buf behind_the_fault;
static char other_stack[65536];

KEEP void handler(int signal_number)
{
    sample_stop(signal_number);
    if (signal_number == SIGSEGV || signal_number == SIGILL)
        siglongjmp(behind_the_fault, 1);
    OPAQUE(signal_number);
}

KEEP int fault(int *where, int value)
{
    volatile int numbers[8];
    numbers[value & 7] = value;
    *(volatile int *)where = value;
    return numbers[value & 7];
}

/* An instruction that faults is the whole function. */
void fault_at_entry(void);
__asm__(".text\n"
        ".globl fault_at_entry\n"
        ".type fault_at_entry,%function\n"
        "fault_at_entry:\n"
        ".cfi_startproc\n"
#if defined __x86_64__
        "ud2\n"
        "ret\n"
#elif defined __aarch64__
        "udf #0\n"
        "ret\n"
#elif defined __s390x__
        ".short 0\n"
        "br %r14\n"
#endif
        ".cfi_endproc\n"
        ".size fault_at_entry,.-fault_at_entry\n");

KEEP int provoke(const char *how, int value)
{
    if (strcmp(how, "raise") == 0)
        raise(SIGUSR1);
    else if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGUSR1);
    else if (sigsetjmp(behind_the_fault, 1) == 0) {
        if (strcmp(how, "entry") == 0)
            fault_at_entry();
        else
            value = fault(NULL, value);
    }
    OPAQUE(value);
    return value;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "raise";
    char higher_stack[65536];
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    if (strcmp(how, "above") == 0)
        stack.ss_sp = higher_stack;
    if (strcmp(how, "altstack") == 0 || strcmp(how, "above") == 0) {
        sigaltstack(&stack, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    printf("signals %s %d\n", how, provoke(how, 4));
    return 0;
}
