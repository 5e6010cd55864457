// Methods, a lambda and recursion, each through a function that LLDB may have no unwind data for.
#include <cstdio>
#define NOINLINE __attribute__((noinline))

extern "C" int (*relay)(int (*)(void *, int), void *, int);

extern "C" NOINLINE int leaf(void *object, int value)
{
    volatile int sum = value + (object != nullptr);
    return sum;
}

struct Counter {
    int start;
    NOINLINE int method(int step);
    NOINLINE int lambda(int step);
    NOINLINE int recursion(int depth);
};

int Counter::method(int step)
{
    int local = step + 1;
    int sum = relay(leaf, this, local);
    return sum + start + local;
}

int Counter::lambda(int step)
{
    auto function = [this, step](int more) NOINLINE {
        int inner = step + more;
        int sum = relay(leaf, &inner, more);
        return sum + inner + start;
    };
    return function(step) + start;
}

static int again(void *object, int depth) { return static_cast<Counter *>(object)->recursion(depth); }

int Counter::recursion(int depth)
{
    int sum = leaf(this, depth);
    if (depth > 0)
        sum += relay(again, this, depth - 1);
    return sum + start;
}

int main(int argc, char **)
{
    Counter counter = {7};
    int sum = counter.method(argc) + counter.lambda(argc) + counter.recursion(3);
    printf("%d\n", sum);
}
