/* Signal handlers on stacks of their own: one at lower addresses than the stack that is interrupted, one at higher. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define OUT_OF_LINE __attribute__((noinline))
enum { SIZE = 65536 };

static volatile int handled;
static sigjmp_buf back;
static char lower[SIZE];

OUT_OF_LINE int note(int value) {
  handled += value;
  return handled;
}

static void on_inner(int number) { note(number); }

static void on_user(int number) {
  int before = handled;
  if (before < 60)
    raise(SIGUSR2);
  note(number);
}

static void on_fault(int number) {
  note(number);
  siglongjmp(back, number);
}

OUT_OF_LINE int interrupted(int depth) {
  int mine = depth * 3;
  if (depth == 0)
    raise(SIGUSR1);
  else
    mine += interrupted(depth - 1);
  return note(mine);
}

OUT_OF_LINE int faulting(int *place) {
  int mine = handled;
  *place = mine;
  return note(mine);
}

OUT_OF_LINE int recovered(int *place) {
  volatile int code = sigsetjmp(back, 1);
  if (code == 0)
    return faulting(place);
  return note(code);
}

OUT_OF_LINE int aborting(int depth) {
  int mine = depth;
  if (depth == 0)
    abort();
  return aborting(depth - 1) + note(mine);
}

OUT_OF_LINE void use(char *stack) {
  stack_t alternate = {.ss_sp = stack, .ss_size = SIZE};
  sigaltstack(&alternate, NULL);
}

int main(void) {
  char higher[SIZE];
  void (*const functions[])(int) = {on_user, on_inner, on_fault};
  const int numbers[] = {SIGUSR1, SIGUSR2, SIGSEGV};
  for (int i = 0; i < 3; i++) {
    struct sigaction action = {.sa_flags = SA_ONSTACK};
    action.sa_handler = functions[i];
    sigaction(numbers[i], &action, NULL);
  }
  int result = 0;
  use(lower);
  result += interrupted(2);
  result += recovered(NULL);
  use(higher);
  result += interrupted(1);
  result += recovered(NULL);
  printf("%d %d\n", result, handled);
  return 0;
}
