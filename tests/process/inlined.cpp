/* Functions that are inlined: a method of a class in a namespace, and a template in a second file's lines. */

extern "C" __attribute__((noipa)) int stop_here(int value)
{
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value + 1;
}

namespace shapes {
class Square {
public:
    explicit Square(int side) : side(side) {}
    __attribute__((always_inline)) int area() const
    {
        return stop_here(side * side) + side;
    }
private:
    int side;
};
}

static inline __attribute__((always_inline)) int double_area(const shapes::Square &square)
{
    return square.area() * 2;
}

int main(int count, char **)
{
    shapes::Square square(count + 2);
    return double_area(square) & 1;
}
