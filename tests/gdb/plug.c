/* A library whose function calls back.  With another ROOM, its frame has another size, and its code has not. */
#ifndef ROOM
#define ROOM 8
#endif
__attribute__((noinline)) static int inner(int (*back)(int), int n) {
  volatile char room[ROOM];
  room[0] = 0;
  int result = back(n);
  return result + n + room[0];
}
int plug(int (*back)(int), int n) { int result = inner(back, n); return result * 2; }
