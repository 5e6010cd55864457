/* A library whose frames are small. */
#define OUT_OF_LINE __attribute__((noinline))

static OUT_OF_LINE int inner(int value, int (*note)(int)) {
  int mine = note(value);
  return mine + 1;
}

int part(int value, int (*note)(int)) {
  int mine = inner(value + 1, note);
  return mine * 2;
}
