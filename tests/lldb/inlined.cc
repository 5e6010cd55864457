// Functions that are inlined in others: in a method, a method in a function, one in another instance of itself; and one
// that ends in a tail call.
static volatile int sink;

extern "C" __attribute__((noinline)) void reached(volatile int *place) { sink += *place; }

#define INLINED inline __attribute__((always_inline))
#define OUT_OF_LINE __attribute__((noinline))

template <int depth> static INLINED int nested(int by) {
  volatile int own = by + depth;
  if constexpr (depth > 0)
    nested<depth - 1>(own + 1);
  else
    reached(&own);
  return own;
}

struct Box {
  volatile int weight;

  INLINED int measured(int by) {
    volatile int local = by + weight;
    nested<2>(local);
    return local;
  }
  OUT_OF_LINE int doubled(int by) {
    volatile int kept = by * 2;
    {
      volatile int inner = kept + 1;
      nested<1>(inner);
    }
    return kept;
  }
};

OUT_OF_LINE int opened(int by) {
  Box box = {by};
  volatile int found;
  if (by == 1)
    found = box.measured(by);
  else
    found = box.doubled(by);
  return found;
}

OUT_OF_LINE int passed_on(int by) {
  sink += by;
  return opened(by);
}

int main(int argc, char **) {
  volatile int result = passed_on(argc);
  return !result;
}
