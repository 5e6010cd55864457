// Inlined library code, and exceptions, on the way of a step.
#include <cstdio>
#include <stdexcept>
#include <string>

static volatile int sink;

__attribute__((noinline)) void note(int n)
{
    sink += n;
}

__attribute__((noinline)) int thrower(int x)
{
    if (x % 3 == 0)
        throw std::runtime_error("x" + std::to_string(x));
    return x * 2;
}

int main(int argc, char **argv)
{
    note(argc);
    try {
        sink += thrower(argc - 1);
    } catch (const std::exception &e) {
        std::puts(e.what());
    }
    return 0;
}
