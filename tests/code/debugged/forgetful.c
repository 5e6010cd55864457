/* Functions that stop: `right` has the directives for its push, `forgetful` has none, so that DWARF CFI and SFrame are
   wrong alike.  What it saves is its own return address, in %rbx: the stack looks right, but for the CFA. */

__asm__(
    "  .text\n"
    "  .globl stop_here\n"
    "  .type stop_here, @function\n"
    "stop_here:\n"
    "  .cfi_startproc\n"
    "  ret\n"
    "  .cfi_endproc\n"
    "  .size stop_here, .-stop_here\n"

    "  .globl right\n"
    "  .type right, @function\n"
    "right:\n"
    "  .cfi_startproc\n"
    "  push %rbx\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  .cfi_offset %rbx, -16\n"
    "  call stop_here\n"
    "  pop %rbx\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  .cfi_restore %rbx\n"
    "  ret\n"
    "  .cfi_endproc\n"
    "  .size right, .-right\n"

    "  .globl forgetful\n"
    "  .type forgetful, @function\n"
    "forgetful:\n"
    "  .cfi_startproc\n"
    "  mov (%rsp), %rbx\n"
    "  push %rbx\n"
    "  call stop_here\n"
    "  pop %rbx\n"
    "  ret\n"
    "  .cfi_endproc\n"
    "  .size forgetful, .-forgetful\n"

    "  .globl huge\n"
    "  .type huge, @function\n"
    "huge:\n"
    "  .cfi_startproc\n"
    "  call stop_here\n"
    "  ret\n"
    "  .skip 70000, 0x90\n"
    "  .cfi_endproc\n"
    "  .size huge, .-huge\n");

void right(void);
void forgetful(void);
void huge(void);

int main(void)
{
    right();
    __asm__ volatile("call forgetful" : : : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "memory");
    huge();
    return 0;
}
