/* A function that is called from an inlined one: on its return an outer frame is the first that an unwinder is asked for. */
volatile long sum;

__attribute__((noipa)) void leaf(void)
{
    sum += 2;
}

static inline __attribute__((always_inline)) void within(void)
{
    leaf();
    sum ^= 1;
}

__attribute__((noipa)) void caller(void)
{
    within();
    within();
}

int main(void)
{
    caller();
    return 0;
}
