/* Calls of many shapes: recursion, function pointers, tail calls, hot and cold parts, big and moving frames. */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_LINE __attribute__((noinline))

struct order {
  int weight;
  char name[12];
};

static volatile int total;

OUT_OF_LINE int add(int amount) {
  total += amount;
  return total;
}

OUT_OF_LINE int twice(int amount) {
  int first = add(amount);
  return first + add(first & 15);
}

OUT_OF_LINE static int by_weight(const void *left, const void *right) {
  const struct order *a = left, *b = right;
  int difference = a->weight - b->weight;
  return difference ? difference : strcmp(a->name, b->name);
}

OUT_OF_LINE int sorted(int seed) {
  struct order orders[6];
  for (int i = 0; i < 6; i++) {
    orders[i].weight = (seed * (i + 7)) % 11;
    snprintf(orders[i].name, sizeof orders[i].name, "order-%d", i);
  }
  qsort(orders, 6, sizeof orders[0], by_weight);
  return orders[0].weight + orders[5].name[6];
}

OUT_OF_LINE int last_call(int value) { return twice(value ^ 3); }

OUT_OF_LINE int passing_on(int value) {
  total = value;
  return last_call(value + 1);
}

OUT_OF_LINE __attribute__((cold)) void complain(int value) { printf("negative: %d\n", value); }

OUT_OF_LINE int mostly_hot(const int *values, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    if (__builtin_expect(values[i] < 0, 0)) {
      complain(values[i]);
      sum -= twice(values[i] & 7);
      complain(sum);
    }
    sum += values[i] * 3;
  }
  return sum;
}

OUT_OF_LINE int growing(int size) {
  char *room = alloca(size * 16 + 8);
  memset(room, size, size * 16);
  return twice(room[size]) + room[0];
}

OUT_OF_LINE int large(int size) {
  char buffer[20000];
  memset(buffer, size, sizeof buffer);
  return growing(size) + buffer[size * 100];
}

OUT_OF_LINE int realigned(int value) {
  _Alignas(64) char lines[128];
  memset(lines, value, sizeof lines);
  return twice(lines[value & 63]) + lines[127];
}

OUT_OF_LINE int many(int a, int b, int c, int d, int e, int f, int g, int h, double x) {
  int mixed = a + b * c - d + e * f - g;
  return twice(mixed & 31) + h + (int)x;
}

OUT_OF_LINE int down(int depth, long token) {
  long mine = token * 5 + depth;
  int below;
  if (depth == 0)
    below = sorted((int)(mine & 63));
  else
    below = down(depth - 1, mine);
  total += (int)(mine & 1);
  return below + (int)(mine & 3);
}

static inline __attribute__((always_inline)) int squared(int value) {
  int result = value * value;
  return result + twice(value);
}

OUT_OF_LINE int inlining(int value) {
  int outer = squared(value) + 1;
  outer += squared(outer & 7);
  return outer;
}

int main(int argc, char **argv) {
  int values[] = {4, 8, -15, 16, -23, 42};
  int (*chosen[])(int) = {twice, passing_on, growing, large, realigned, inlining};
  int result = argc;
  for (int i = 0; i < 6; i++) {
    int one = chosen[i](i + 2);
    result += one;
    printf("%d: %d\n", i, one);
  }
  result += mostly_hot(values, 6);
  result += down(4, result & 255);
  result += many(1, 2, 3, 4, 5, 6, 7, 8, 2.5);
  printf("%s %d\n", argv[0] ? "done" : "", result);
  return 0;
}
