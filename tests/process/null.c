/* Calls a function that is not there. */
typedef void (*function)(void);

__attribute__((noipa)) int call(function called, int value)
{
    called();
    return value + 1;
}

int main(void)
{
    volatile int result = call(0, 3);
    return result;
}
