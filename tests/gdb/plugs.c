/* Loads each library of its arguments, calls its function, and unloads it. */
#include <dlfcn.h>

int back(int n) { return n + 1; }

int main(int argc, char **argv) {
  int sum = 0;
  for (int i = 1; i < argc; i++) {
    void *library = dlopen(argv[i], RTLD_NOW);
    int (*plug)(int (*)(int), int) = dlsym(library, "plug");
    sum += plug(back, i);
    dlclose(library);
  }
  return back(sum) == 0;
}
