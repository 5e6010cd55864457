/* Control that leaves the order of calls: longjmp, signals and their handlers, calls of functions that do not return. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))

static jmp_buf back;
static volatile int handled;
static volatile int level;

OUT_OF_LINE int note(int value) {
  handled += value;
  return handled;
}

OUT_OF_LINE void leave(int value) {
  note(value);
  longjmp(back, value);
}

OUT_OF_LINE int deeper(int depth) {
  int mine = depth * 3;
  level = depth;
  if (depth > 3)
    leave(depth);
  return deeper(depth + 1) + mine;
}

OUT_OF_LINE int attempt(int start) {
  volatile int kept = start * 2;
  int code = setjmp(back);
  if (code == 0)
    return deeper(start);
  kept += code;
  return note(kept);
}

static void on_user(int number) {
  int before = handled;
  note(number);
  handled = before + 1;
}

static void on_alarm(int number) { note(number & 1); }

OUT_OF_LINE int interrupted(int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; i++) {
    raise(SIGUSR1);
    sum += note(i);
    if (i & 1)
      raise(SIGUSR2);
  }
  return sum;
}

OUT_OF_LINE __attribute__((noreturn)) void finish(int code) {
  printf("handled %d\n", handled);
  exit(code);
}

int main(int argc, char **argv) {
  signal(SIGUSR1, on_user);
  signal(SIGUSR2, on_alarm);
  int result = 0;
  for (int i = 0; i < 3; i++) {
    result += attempt(i);
    result += interrupted(2);
    printf("%d %d\n", i, result);
  }
  finish(result & 7);
}
