namespace counters {
struct Counter {
  __attribute__((noinline)) int next(int n) { return n + 1; }
};
}  // namespace counters

int main(int argc, char **) {
  counters::Counter counter;
  return counter.next(argc);
}
