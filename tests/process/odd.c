/* Frames that are unwound in the ways that hardly any are: a CFA in a register that is not a frame pointer, as in the
 * dynamic linker, and functions without any unwind data, which this file is compiled without. */
#define KEEP __attribute__((noipa))

/* Saves rbx, and changes it. */
__asm__(".text\n"
        ".globl clobber\n"
        ".type clobber,@function\n"
        "clobber:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx,-16\n"
        "xor %ebx,%ebx\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size clobber,.-clobber\n"
        /* Its CFA is rbx + 16, so that the stack can be aligned. */
        ".globl aligned\n"
        ".type aligned,@function\n"
        "aligned:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx,-16\n"
        "mov %rsp,%rbx\n"
        ".cfi_def_cfa_register %rbx\n"
        "sub $40,%rsp\n"
        "and $-64,%rsp\n"
        "call clobber\n"
        "mov %rbx,%rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size aligned,.-aligned\n");

int aligned(int value);

KEEP int unknown(int depth)
{
    volatile int room[8];
    room[depth & 7] = depth ? unknown(depth - 1) : aligned(depth);
    return room[depth & 7];
}

int main(void)
{
    volatile int result = unknown(2);
    return result;
}
