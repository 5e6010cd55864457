/* An array whose bound is in a register that the CFI of the function inside declares lost. */
static volatile int sink;
__attribute__((naked, noinline)) int lose(int number)
{
    __asm__(".cfi_undefined rbx\n .cfi_undefined r12\n .cfi_undefined r13\n"
            ".cfi_undefined r14\n .cfi_undefined r15\n mov %edi, %eax\n ret");
}
__attribute__((noipa)) int sum(int count)
{
    int values[count];
    for (int i = 0; i < count; i++)
        values[i] = lose(i);
    return values[count - 1] + lose(count);
}
int main(void) { return sum(3); }
