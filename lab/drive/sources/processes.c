/* Processes that fork, vfork and run a program: this one, with an argument. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))

static volatile int total;

OUT_OF_LINE int note(int value) {
  total += value;
  return total;
}

OUT_OF_LINE int in_child(int depth) {
  int mine = depth * 3;
  if (depth == 0)
    return note(mine);
  return in_child(depth - 1) + note(mine);
}

OUT_OF_LINE int in_parent(int depth) {
  int mine = depth * 5;
  if (depth == 0)
    return note(mine);
  return in_parent(depth - 1) + note(mine);
}

OUT_OF_LINE int executed(int depth) {
  int mine = depth * 7;
  if (depth == 0)
    return note(mine);
  return executed(depth - 1) + note(mine);
}

OUT_OF_LINE int forked(int depth) {
  if (fork() == 0)
    _exit(in_child(depth) & 1);
  wait(NULL);
  return in_parent(depth);
}

OUT_OF_LINE int vforked(int depth) {
  if (vfork() == 0)
    _exit(in_child(depth) & 1);
  wait(NULL);
  return in_parent(depth);
}

OUT_OF_LINE int child_executes(char *program) {
  if (vfork() == 0) {
    execl(program, program, "again", NULL);
    _exit(1);
  }
  wait(NULL);
  return in_parent(1);
}

int main(int argc, char **argv) {
  if (argc > 1)
    return executed(4) & 1;
  int result = forked(4);
  result += vforked(4);
  result += child_executes(argv[0]);
  printf("%d %d\n", result, total);
  fflush(stdout);
  execl(argv[0], argv[0], "again", NULL);
  return 1;
}
