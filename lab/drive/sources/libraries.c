/* Loads a library, and after it another one from the same path. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))

static const char *const path = "./part.so";
static volatile int total;

OUT_OF_LINE int note(int value) {
  total += value;
  return total;
}

/* Make a file beside the program what is at the path. */
OUT_OF_LINE void provide(const char *name) {
  char from[4096], buffer[4096];
  ssize_t length = readlink("/proc/self/exe", from, sizeof from - 100);
  from[length] = 0;
  strcpy(strrchr(from, '/') + 1, name);
  FILE *in = fopen(from, "r"), *out;
  unlink(path);
  out = fopen(path, "w");
  for (size_t count; (count = fread(buffer, 1, sizeof buffer, in)) != 0;)
    fwrite(buffer, 1, count, out);
  fclose(in);
  fclose(out);
}

OUT_OF_LINE int used(int value) {
  void *library = dlopen(path, RTLD_NOW);
  int (*part)(int, int (*)(int)) = (int (*)(int, int (*)(int)))dlsym(library, "part");
  int result = part(value, note);
  dlclose(library);
  return result;
}

int main(void) {
  static const char *const names[] = {"part_small.so", "part_large.so", "part_small.so"};
  int result = 0;
  for (int i = 0; i < 3; i++) {
    provide(names[i]);
    result += used(i);
    printf("%d\n", result);
  }
  return 0;
}
