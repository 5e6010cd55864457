/* The program below many frames: a recursion of two functions calls its main, which gets another name.  This file is
   included before its source, because some linkers do not merge the SFrame of two object files.  The functions have no
   arguments: GDB looks for the value of an argument that is passed on in all frames. */
int program_main(int argc, char **argv);

static volatile int left = DEPTH;
static int count;
static char **words;

static int descend(void);

__attribute__((noipa)) static int hop(void) {
  volatile char room[40] = {1};
  int status = descend();
  return status + room[1];
}

__attribute__((noipa)) static int descend(void) {
  left -= 2;
  int status = left > 0 ? hop() : program_main(count, words);
  return status + (left > 0);
}

int main(int argc, char **argv) {
  count = argc;
  words = argv;
  int status = descend();
  return status + (left > 0);
}

#define main program_main
