/* Waits for a signal, so that a debugger can attach. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))

static volatile int handled;

OUT_OF_LINE int note(int value) {
  handled += value;
  return handled;
}

static void on_user(int number) { note(number); }

OUT_OF_LINE int waiting(int depth) {
  int mine = depth * 3;
  if (depth == 0)
    pause();
  else
    mine += waiting(depth - 1);
  return note(mine);
}

int main(void) {
  signal(SIGUSR1, on_user);
  int result = 0;
  for (int i = 0; i < 4; i++) {
    result += waiting(i);
    printf("%d\n", result);
    fflush(stdout);
  }
  return 0;
}
