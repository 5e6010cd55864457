/* A function that calls another one on a stack of its own; with an argument, that one does so once more, on a stack
   at higher addresses.  With SIGNAL_FRAME, the CFI says that the function that does so is a signal frame, as OCaml's does:
   unwinders then accept a caller at lower addresses. */
#define _GNU_SOURCE
#include <sys/mman.h>

enum { SIZE = 65536 };
static char *first_top, *second_top;
volatile long sum;

void call_on(void *top, void (*function)(void));

__asm__(".text\n"
        ".globl call_on\n"
        ".type call_on, @function\n"
        "call_on:\n"
        ".cfi_startproc\n"
#ifdef SIGNAL_FRAME
        ".cfi_signal_frame\n"
#endif
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "mov %rdi, %rsp\n"
        "call *%rsi\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_on, . - call_on\n");

/* Calls leaf; what it returns to is the first instruction of landing, as if a signal had interrupted that one. */
void interrupting(void);

__asm__(".text\n"
        ".globl interrupting\n"
        ".type interrupting, @function\n"
        "interrupting:\n"
        ".cfi_startproc\n"
        ".cfi_signal_frame\n"
        "lea landing(%rip), %rax\n"
        "push %rax\n"
        "call leaf\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size interrupting, . - interrupting\n"
        ".type landing, @function\n"
        "landing:\n"
        ".cfi_startproc\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size landing, . - landing\n");

__attribute__((noipa)) void leaf(void)
{
    sum++;
}

__attribute__((noipa)) static void work(void)
{
    leaf();
    sum ^= 1;
}

__attribute__((noipa)) static void inward(void)
{
    call_on(second_top, work);
    sum ^= 2;
}

int main(int argc, char **argv)
{
    char *stacks = mmap(0, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)argv;
    if (stacks == MAP_FAILED)
        return 1;
    first_top = stacks + SIZE;
    second_top = first_top + SIZE;
    call_on(first_top, argc > 2 ? interrupting : argc > 1 ? inward : work);
    sum ^= 4;
    return 0;
}
