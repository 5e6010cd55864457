// C++ threads that take turns, with what they do in lambdas and exceptions that end in the thread that threw them.
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <semaphore.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))

class Turn {
public:
  // Whoever granted the turn is waiting for its own before this thread goes on.
  OUT_OF_LINE void await() {
    while (sem_wait(&come_) != 0)
      ;
    usleep(5000);
  }
  OUT_OF_LINE void grant() { sem_post(&come_); }

private:
  sem_t come_{};
};

static constexpr int threads = 3, rounds = 2;
static std::array<Turn, threads + 1> turns;
static Turn started;
static volatile int done;

OUT_OF_LINE int parse(const std::string &text) {
  if (text.size() > 3)
    throw std::length_error(text);
  return std::stoi(text);
}

OUT_OF_LINE int attempt(const std::string &text) {
  try {
    return parse(text);
  } catch (const std::exception &error) {
    done += 1;
    return -1;
  }
}

OUT_OF_LINE int apply(const std::function<int(int)> &call, int value) {
  int result = call(value);
  done += result & 1;
  return result;
}

OUT_OF_LINE int task(int id, int round) {
  std::string text(static_cast<size_t>(id + round), static_cast<char>('1' + id));
  int parsed = attempt(text);
  return apply([&](int value) { return value + attempt(text + "0"); }, parsed);
}

int main() {
  std::vector<std::thread> pool;
  std::vector<int> results(threads + 1);
  for (size_t id = 1; id <= threads; id++) {
    pool.emplace_back([&, id] {
      started.grant();
      for (int round = 0; round < rounds; round++) {
        turns[id].await();
        results[id] += task(static_cast<int>(id), round);
        turns[(id + 1) % turns.size()].grant();
      }
    });
    started.await();
  }
  for (int round = 0; round < rounds; round++) {
    results[0] += task(0, round);
    turns[1].grant();
    turns[0].await();
  }
  for (auto &thread : pool)
    thread.join();
  for (int result : results)
    std::printf("%d ", result);
  std::printf("%d\n", static_cast<int>(done));
  return 0;
}
