// Methods, and pointers to them, without exceptions: what `this` is in a frame, and who shows it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define OUT_OF_LINE __attribute__((noinline))

struct Counter {
  int steps;
  int last[4];
  OUT_OF_LINE explicit Counter(int steps) : steps(steps), last{} {}
  OUT_OF_LINE int step(int amount);
  OUT_OF_LINE int twice(int amount);
  OUT_OF_LINE int through(int (Counter::*method)(int), int amount);
  OUT_OF_LINE virtual int deep(int depth);
  OUT_OF_LINE static int compare(const void *left, const void *right);
  virtual ~Counter() {}
};

struct Loud : Counter {
  long noise;
  explicit Loud(int steps) : Counter(steps), noise(steps * 7L) {}
  OUT_OF_LINE int deep(int depth) override;
};

extern "C" OUT_OF_LINE int called(Counter *counter, int (*function)(Counter *, int), int amount) {
  int result = function(counter, amount);
  return result + counter->steps;
}

OUT_OF_LINE static int plain(Counter *counter, int amount) {
  int before = counter->steps;
  int after = counter->step(amount);
  return after - before;
}

int Counter::step(int amount) {
  int mine = amount * 2 + steps;
  last[mine & 3] = amount;
  steps += amount;
  return mine + abs(last[0] - amount);
}

int Counter::twice(int amount) {
  int first = step(amount);
  int second = called(this, plain, first & 7);
  return first + second;
}

int Counter::through(int (Counter::*method)(int), int amount) {
  int result = (this->*method)(amount);
  return result ^ steps;
}

int Counter::compare(const void *left, const void *right) {
  int difference = *static_cast<const int *>(left) - *static_cast<const int *>(right);
  return difference;
}

int Counter::deep(int depth) {
  char room[40];
  memset(room, depth, sizeof room);
  if (depth == 0)
    return through(&Counter::twice, room[3] + 1);
  return deep(depth - 1) + room[depth];
}

int Loud::deep(int depth) {
  noise += depth;
  int below = Counter::deep(depth);
  qsort(last, 4, sizeof last[0], compare);
  return below + last[3];
}

int main(int argc, char **argv) {
  Loud loud(argc);
  Counter counter(argc + 1);
  Counter *all[] = {&loud, &counter};
  int result = 0;
  for (int i = 0; i < 4; i++) {
    Counter *one = all[i & 1];
    result += one->deep(i);
    result += one->through(&Counter::step, i);
    result += called(one, plain, i);
    printf("%d: %d\n", i, result);
  }
  return argc > 1 ? atoi(argv[1]) : 0;
}
