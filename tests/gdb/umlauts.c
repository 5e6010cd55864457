/* Functions whose names are no ASCII. */
__attribute__((noinline)) int größe(int länge)
{
    volatile int x = länge;
    return x + 1;
}

__attribute__((noinline)) int naïve(int n)
{
    return größe(n) + 1;
}

int main(int argc, char **argv __attribute__((unused)))
{
    return naïve(argc) + 1;
}
