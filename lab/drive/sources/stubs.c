/* Calls through both kinds of stubs of a PLT: of a function whose address is taken too, the stub is in .plt.got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_LINE __attribute__((noinline))

static int (*volatile compare)(const char *, const char *);
static size_t (*volatile measure)(const char *);
static volatile int sum;

OUT_OF_LINE int measured(const char *text) {
  size_t direct = strlen(text);
  size_t indirect = measure(text);
  return (int)(direct + indirect);
}

OUT_OF_LINE int compared(const char *left, const char *right) {
  int direct = strcmp(left, right);
  int indirect = compare(left, right);
  return (direct < 0) + (indirect < 0) * 2 + abs(atoi(left));
}

int main(int argc, char **argv) {
  compare = strcmp; /* in code: a variable's initial value would not need the GOT */
  measure = strlen;
  const char *words[] = {"alpha", "17", "omega"};
  for (int i = 0; i < 3; i++) {
    sum += measured(words[i]);
    sum += compared(words[i], words[(i + 1) % 3]);
  }
  printf("%d %d\n", sum, argc > 1 ? measured(argv[1]) : 0);
  return 0;
}
