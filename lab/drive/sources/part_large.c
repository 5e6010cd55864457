/* The same library with larger frames: at the addresses of the smaller one's code are other rows. */
#define OUT_OF_LINE __attribute__((noinline))

static OUT_OF_LINE int innermost(int value, int (*note)(int)) {
  volatile int room[40] = {value};
  int mine = note(room[value & 7]);
  return mine + room[3];
}

static OUT_OF_LINE int inner(int value, int (*note)(int)) {
  volatile int room[90] = {value};
  int mine = innermost(value, note);
  return mine + room[value & 7] + innermost(mine, note);
}

int part(int value, int (*note)(int)) {
  volatile int room[200] = {value};
  int mine = inner(value + 1, note);
  return mine * 2 + room[value & 7];
}
