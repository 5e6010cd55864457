// C++ as it is written: virtual calls, lambdas, std::function, containers, destructors, exceptions through all of them.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define OUT_OF_LINE __attribute__((noinline))

static volatile int balance;

struct Scope {
  int weight;
  OUT_OF_LINE explicit Scope(int weight) : weight(weight) { balance += weight; }
  OUT_OF_LINE ~Scope() { balance -= weight; }
};

struct Shape {
  virtual ~Shape() = default;
  virtual int area(int scale) const = 0;
};

struct Square : Shape {
  int side;
  explicit Square(int side) : side(side) {}
  OUT_OF_LINE int area(int scale) const override {
    int scaled = side * scale;
    return scaled * scaled;
  }
};

struct Named : Shape {
  std::string name;
  explicit Named(std::string name) : name(std::move(name)) {}
  OUT_OF_LINE int area(int scale) const override { return static_cast<int>(name.size()) * scale; }
};

OUT_OF_LINE int check(int value) {
  if (value % 3 == 0)
    throw std::runtime_error("refused " + std::to_string(value));
  return value * 2;
}

OUT_OF_LINE int guarded(int value) {
  Scope scope(value);
  try {
    return check(value) + check(value + 1);
  } catch (const std::runtime_error &error) {
    balance += error.what()[0] == 'r';
    return -value;
  }
}

OUT_OF_LINE int through(int depth) {
  Scope scope(depth);
  if (depth == 0)
    throw 42;
  return through(depth - 1) + 1;
}

OUT_OF_LINE int caught_far_out(int depth) {
  try {
    return through(depth);
  } catch (int code) {
    return code + balance;
  }
}

OUT_OF_LINE int rethrown(int depth) {
  try {
    try {
      return through(depth);
    } catch (...) {
      balance += 1;
      throw;
    }
  } catch (int code) {
    return code - 1;
  }
}

template <typename Call> OUT_OF_LINE int repeat(int count, Call call) {
  int sum = 0;
  for (int i = 0; i < count; i++)
    sum += call(i);
  return sum;
}

OUT_OF_LINE int callables(int base) {
  std::function<int(int)> doubled = [base](int value) { return value * 2 + base; };
  std::function<int(int)> guarded_call = guarded;
  int sum = repeat(3, doubled);
  sum += repeat(3, guarded_call);
  sum += repeat(2, [&](int value) { return doubled(value) + guarded(value + sum % 5); });
  return sum;
}

OUT_OF_LINE int containers(int count) {
  std::map<std::string, int> lengths;
  std::vector<int> order;
  for (int i = 0; i < count; i++) {
    std::string word(static_cast<size_t>(i % 4 + 1), static_cast<char>('a' + i));
    lengths[word] = i;
    order.push_back((i * 7) % count);
  }
  std::sort(order.begin(), order.end(), [](int left, int right) { return left > right; });
  int sum = 0;
  for (const auto &entry : lengths)
    sum += entry.second * static_cast<int>(entry.first.size());
  return sum + order.front();
}

OUT_OF_LINE int shapes(int scale) {
  std::vector<std::unique_ptr<Shape>> all;
  all.push_back(std::make_unique<Square>(3));
  all.push_back(std::make_unique<Named>("shape"));
  all.push_back(std::make_unique<Square>(5));
  int sum = 0;
  for (const auto &shape : all)
    sum += shape->area(scale);
  return sum;
}

int main(int, char **) {
  int result = 0;
  for (int round = 1; round < 3; round++) {
    result += guarded(round + 1);
    result += shapes(round);
    result += callables(round);
    result += containers(6);
    result += caught_far_out(3);
    result += rethrown(2);
    std::printf("round %d: %d %d\n", round, result, static_cast<int>(balance));
  }
  return 0;
}
