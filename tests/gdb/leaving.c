/* A fiber whose entry function says that it has no caller, on a stack that was used before. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *main_sp;
int sink;
__attribute__((noinline)) void work(int n) { sink += n; }
void switch_to(void **save, void *to);
__asm__(".text\n.type switch_to,@function\nswitch_to:\n.cfi_startproc\nmov %rsp,(%rdi)\nmov %rsi,%rsp\nret\n"
        ".cfi_endproc\n.size switch_to,.-switch_to\n");

__attribute__((noinline)) static void fiber_main(void) {
  __asm__ volatile(".cfi_undefined rip");
  work(7);
  void *dead;
  switch_to(&dead, main_sp);
  __builtin_trap();
}

int main(void) {
  size_t size = 64 << 10;
  char *stack = aligned_alloc(64, size);
  memset(stack, 0x41, size);
  uint64_t *top = (uint64_t *)(stack + size - 264);
  top[0] = (uint64_t)fiber_main;
  top[1] = (uint64_t)main + 4; /* left there by an earlier use */
  switch_to(&main_sp, top);
  return 0;
}
