/* One context of each kind that does not run.  Each is a fiber that passes through functions of its own, stops in
 * sample_stop while it runs, and is left for good then.  The last stop is in main, where none of them runs. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "sample.h"

enum { SIZE = 1 << 17 };

ucontext_t main_context, fiber, jumping, handling, interrupted, fresh, scratch;
jmp_buf jump;
sigjmp_buf signal_jump;
uint64_t *switched, *switched_main;
char stacks[6][SIZE] __attribute__((aligned(16)));
struct {
    int number;
    ucontext_t context;
    jmp_buf jump;
} empty, *nothing;

void switch_stack(uint64_t **from, uint64_t *to);
void switched_start(void);
void trap(void);
void fresh_entry(void);

KEEP int fiber_inner(int level)
{
    volatile int room[9] = {level};
    if (level) {
        room[1] = fiber_inner(level - 1);
    } else {
        sample_stop(1);
        swapcontext(&fiber, &main_context);
    }
    OPAQUE(level);
    return room[0] + room[1] + level;
}

static void fiber_body(void)
{
    volatile int result = fiber_inner(3);
    (void)result;
}

KEEP int jump_inner(int level)
{
    volatile int room[17] = {level};
    if (level) {
        room[1] = jump_inner(level - 1);
    } else {
        sample_stop(2);
        if (!setjmp(jump) && !sigsetjmp(signal_jump, 1))
            swapcontext(&jumping, &main_context);
    }
    OPAQUE(level);
    return room[0] + room[1] + level;
}

static void jump_body(void)
{
    volatile int result = jump_inner(2);
    (void)result;
}

static void handler(int number, siginfo_t *information, void *context)
{
    (void)information;
    memcpy(&interrupted, context, sizeof interrupted);
    sample_stop(3);
    swapcontext(&handling, &main_context);
    OPAQUE(number);
}

KEEP int trap_inner(int level)
{
    volatile int room[5] = {level};
    if (level)
        room[1] = trap_inner(level - 1);
    else
        trap();
    OPAQUE(level);
    return room[0] + room[1] + level;
}

static void trap_body(void)
{
    volatile int result = trap_inner(1);
    (void)result;
}

KEEP int switched_inner(int level)
{
    volatile int room[7] = {level};
    if (level) {
        room[1] = switched_inner(level - 1);
    } else {
        sample_stop(4);
        switch_stack(&switched, switched_main);
    }
    OPAQUE(level);
    return room[0] + room[1] + level;
}

void switched_body(void)
{
    volatile int result = switched_inner(2);
    (void)result;
}

static void make(ucontext_t *context, int number, void (*body)(void))
{
    getcontext(context);
    context->uc_stack.ss_sp = stacks[number];
    context->uc_stack.ss_size = SIZE;
    context->uc_link = &main_context;
    makecontext(context, body, 0);
}

/* switch_stack saves registers and SP as coroutine libraries do.  trap and fresh_entry follow functions that end with a
 * call, so that unwind data looked up one byte before their first instruction would be that of another function. */
#if defined __x86_64__
enum { SAVED = 7, SAVED_PC = 6 };
__asm__(".text\n"
        ".type switch_stack, @function\n.globl switch_stack\nswitch_stack:\n.cfi_startproc\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbp, -16\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\npush %r12\n.cfi_adjust_cfa_offset 8\n"
        "push %r13\n.cfi_adjust_cfa_offset 8\npush %r14\n.cfi_adjust_cfa_offset 8\n"
        "push %r15\n.cfi_adjust_cfa_offset 8\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\n.cfi_adjust_cfa_offset -8\npop %r14\n.cfi_adjust_cfa_offset -8\n"
        "pop %r13\n.cfi_adjust_cfa_offset -8\npop %r12\n.cfi_adjust_cfa_offset -8\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\npop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\n"
        "ret\n.cfi_endproc\n.size switch_stack, . - switch_stack\n"
        ".type switched_start, @function\n.globl switched_start\nswitched_start:\n.cfi_startproc\n.cfi_undefined rip\n"
        "call switched_body\nhlt\n.cfi_endproc\n.size switched_start, . - switched_start\n"
        ".type leaves, @function\nleaves:\n.cfi_startproc\nsub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
        "call abort@PLT\n.cfi_endproc\n.size leaves, . - leaves\n"
        ".type trap, @function\n.globl trap\ntrap:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n.size trap, . - trap\n"
        ".type leaves_again, @function\nleaves_again:\n.cfi_startproc\nsub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
        "call abort@PLT\n.cfi_endproc\n.size leaves_again, . - leaves_again\n"
        ".type fresh_entry, @function\n.globl fresh_entry\nfresh_entry:\n.cfi_startproc\nret\n.cfi_endproc\n"
        ".size fresh_entry, . - fresh_entry\n");
#elif defined __aarch64__
enum { SAVED = 14, SAVED_PC = 1 };
__asm__(".text\n"
        ".type switch_stack, @function\n.globl switch_stack\nswitch_stack:\n.cfi_startproc\n"
        "stp x29, x30, [sp, #-112]!\n.cfi_def_cfa_offset 112\n.cfi_offset x29, -112\n.cfi_offset x30, -104\n"
        "stp x19, x20, [sp, #16]\nstp x21, x22, [sp, #32]\nstp x23, x24, [sp, #48]\n"
        "stp x25, x26, [sp, #64]\nstp x27, x28, [sp, #80]\n"
        "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp, #16]\nldp x21, x22, [sp, #32]\nldp x23, x24, [sp, #48]\n"
        "ldp x25, x26, [sp, #64]\nldp x27, x28, [sp, #80]\n"
        "ldp x29, x30, [sp], #112\n.cfi_def_cfa_offset 0\n.cfi_restore x29\n.cfi_restore x30\nret\n.cfi_endproc\n"
        ".size switch_stack, . - switch_stack\n"
        ".type switched_start, @function\n.globl switched_start\nswitched_start:\n.cfi_startproc\n.cfi_undefined x30\n"
        "bl switched_body\nudf #0\n.cfi_endproc\n.size switched_start, . - switched_start\n"
        ".type leaves, @function\nleaves:\n.cfi_startproc\nsub sp, sp, #32\n.cfi_def_cfa_offset 32\n"
        "bl abort\n.cfi_endproc\n.size leaves, . - leaves\n"
        ".type trap, @function\n.globl trap\ntrap:\n.cfi_startproc\nudf #0\nret\n.cfi_endproc\n.size trap, . - trap\n"
        ".type leaves_again, @function\nleaves_again:\n.cfi_startproc\nsub sp, sp, #32\n.cfi_def_cfa_offset 32\n"
        "bl abort\n.cfi_endproc\n.size leaves_again, . - leaves_again\n"
        ".type fresh_entry, @function\n.globl fresh_entry\nfresh_entry:\n.cfi_startproc\nret\n.cfi_endproc\n"
        ".size fresh_entry, . - fresh_entry\n");
#else
enum { SAVED = 20, SAVED_PC = 14 };
__asm__(".text\n"
        ".type switch_stack, @function\n.globl switch_stack\nswitch_stack:\n.cfi_startproc\n"
        "stmg %r6, %r15, 48(%r15)\n.cfi_offset %r14, -48\n.cfi_offset %r11, -72\n"
        "stg %r15, 0(%r2)\nlgr %r15, %r3\nlmg %r6, %r14, 48(%r15)\n.cfi_restore %r14\n.cfi_restore %r11\n"
        "br %r14\n.cfi_endproc\n"
        ".size switch_stack, . - switch_stack\n"
        ".type switched_start, @function\n.globl switched_start\nswitched_start:\n.cfi_startproc\n.cfi_undefined %r14\n"
        "brasl %r14, switched_body\n.short 0\n.cfi_endproc\n.size switched_start, . - switched_start\n"
        ".type leaves, @function\nleaves:\n.cfi_startproc\naghi %r15, -192\n.cfi_adjust_cfa_offset 192\n"
        "brasl %r14, abort@PLT\n.cfi_endproc\n.size leaves, . - leaves\n"
        ".type trap, @function\n.globl trap\ntrap:\n.cfi_startproc\n.short 0\nbr %r14\n.cfi_endproc\n"
        ".size trap, . - trap\n"
        ".type leaves_again, @function\nleaves_again:\n.cfi_startproc\naghi %r15, -192\n.cfi_adjust_cfa_offset 192\n"
        "brasl %r14, abort@PLT\n.cfi_endproc\n.size leaves_again, . - leaves_again\n"
        ".type fresh_entry, @function\n.globl fresh_entry\nfresh_entry:\n.cfi_startproc\nbr %r14\n.cfi_endproc\n"
        ".size fresh_entry, . - fresh_entry\n");
#endif

/* "calm": without a signal; "wait": wait in the end, and say so. */
int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    make(&scratch, 0, fiber_body);
    swapcontext(&main_context, &scratch);
    make(&scratch, 1, jump_body);
    swapcontext(&main_context, &scratch);
    make(&scratch, 2, trap_body);
    if (strcmp(how, "calm"))
        swapcontext(&main_context, &scratch);
    uint64_t *top = (uint64_t *)(stacks[3] + SIZE) - 32 + SAVED % 2; /* aligned when SAVED words are popped */
    top[SAVED_PC] = (uint64_t)switched_start;
    switch_stack(&switched_main, top);
    make(&fresh, 4, fresh_entry);
    if (!strcmp(how, "wait") && puts("ready") > 0 && !fflush(stdout))
        pause();
    sample_stop(5);
    swapcontext(&main_context, &fresh);
    return SAVED + empty.number;
}
