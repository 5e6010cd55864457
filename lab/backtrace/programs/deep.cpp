// Threads wait within virtual calls and std::function; prints "ready".
#include <functional>
#include <iostream>
#include <thread>
#include <unistd.h>

struct Base {
    virtual int deep(int left) = 0;
    virtual ~Base() = default;
};

template <typename T> struct Derived : Base {
    int deep(int left) override
    {
        std::function<int()> next = [this, left] { return left ? deep(left - 1) : pause(); };
        return next() + 1;
    }
};

int main()
{
    Derived<std::string> object;
    std::thread made([&] { object.deep(10); });
    sleep(1);
    std::cout << "ready" << std::endl;
    return object.deep(10);
}
