// What stepping in a debugger meets in C++: inlined functions in inlined functions, lambdas, virtual calls, calls
// through std::function, recursion through templates, exceptions that unwind frames with destructors, and threads.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile long sink;

struct Scope {
    const char *label;
    explicit Scope(const char *text) : label(text) {}
    ~Scope() { sink += label[0]; }
};

static inline int scaled(int value) { return value * 3 + 1; }
static inline int folded(int value) { return scaled(value) ^ scaled(value + 1); }

template <int depth> __attribute__((noinline)) int nested(const std::string &text)
{
    Scope scope("nested");
    int length = static_cast<int>(text.size());
    if constexpr (depth > 0)
        return nested<depth - 1>(text + "x") + folded(length);
    if (length % 2)
        throw std::out_of_range(text);
    return length;
}

struct Task {
    virtual ~Task() = default;
    virtual int run(int argument) const = 0;
};

struct Adds : Task {
    int amount;
    explicit Adds(int by) : amount(by) {}
    __attribute__((noinline)) int run(int argument) const override { return folded(argument) + amount; }
};

struct Repeats : Task {
    std::shared_ptr<Task> inner;
    explicit Repeats(std::shared_ptr<Task> task) : inner(std::move(task)) {}
    int run(int argument) const override
    {
        int total = 0;
        for (int turn = 0; turn < 3; ++turn)
            total += inner->run(argument + turn);
        return total;
    }
};

__attribute__((noinline)) int attempt(const std::string &text)
{
    try {
        return nested<2>(text);
    } catch (const std::out_of_range &error) {
        sink += error.what()[0];
        return -1;
    }
}

static std::mutex lock;
static std::condition_variable changed;
static int waiting;
static bool released;

static void wait_for_release()
{
    std::unique_lock<std::mutex> guard(lock);
    ++waiting;
    changed.notify_all();
    changed.wait(guard, [] { return released; });
}

int main()
{
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number)
        threads.emplace_back(wait_for_release);
    {
        // Else where the threads are at a stop would be chance.
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [] { return waiting == 3; });
    }
    std::deque<std::shared_ptr<Task>> tasks;
    tasks.push_back(std::make_shared<Adds>(2));
    tasks.push_back(std::make_shared<Repeats>(tasks.front()));
    std::set<int> results;
    std::function<int(int)> each = [&](int argument) {
        return std::accumulate(tasks.begin(), tasks.end(), argument, [&](int sum, const std::shared_ptr<Task> &task) {
            int result = task->run(sum & 15);
            results.insert(result);
            return sum + result;
        });
    };
    int total = each(5) + each(7);
    total += attempt("even") + attempt("odd");
    {
        std::lock_guard<std::mutex> guard(lock);
        released = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
        thread.join();
    std::printf("%d %zu\n", total, results.size());
    return 0;
}
