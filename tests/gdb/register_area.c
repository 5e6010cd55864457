/* Calls a function behind a register area and a gap, as GHC's `StgRun` does.  The CFA of its CFI is its own stack pointer,
   from which all registers count, and the caller's stack pointer has a rule of its own. */

void run(void (*called)(void));

__asm__(".text\n"
        ".type run,@function\n"
        "run:\n"
        ".cfi_startproc\n"
        "sub $0x30,%rsp\n"
        ".cfi_def_cfa_offset 0x38\n"
        "mov %rsp,%rax\n"
        "sub $0x4000,%rsp\n"
        ".cfi_def_cfa_offset 0x4038\n"
        "mov %rbx,(%rax)\n"
        "mov %rbp,8(%rax)\n"
        ".cfi_def_cfa %rsp,0\n"
        ".cfi_offset %rbx,0x4000\n"
        ".cfi_offset %rbp,0x4008\n"
        ".cfi_offset %rip,0x4030\n"
        ".cfi_escape 0x16,7,4,0x77,0xb8,0x80,1\n" /* val_expression: rsp is rsp + 0x4038 */
        "xor %ebp,%ebp\n"
        "call *%rdi\n"
        "mov 0x4000(%rsp),%rbx\n"
        "mov 0x4008(%rsp),%rbp\n"
        "add $0x4030,%rsp\n"
        ".cfi_def_cfa %rsp,8\n"
        ".cfi_restore %rbx\n"
        ".cfi_restore %rbp\n"
        ".cfi_offset %rip,-8\n"
        ".cfi_escape 0x08,7\n" /* same_value: rsp */
        "ret\n"
        ".cfi_endproc\n"
        ".size run,.-run\n");

__attribute__((noinline)) void leaf(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) int middle(void)
{
    run(leaf);
    return 1;
}

int main(void)
{
    return middle() - 1;
}
