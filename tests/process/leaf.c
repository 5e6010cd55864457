/* Calls the functions of leaf.s. */
int leaf(int value);
int middle(int value);

__attribute__((noinline)) int caller(int value)
{
    volatile char room[100];
    room[value & 31] = 1;
    return leaf(value) + middle(value) + room[3];
}

__attribute__((noinline)) int outer(int value)
{
    volatile char room[200];
    room[value & 31] = 1;
    return caller(value) + room[3];
}

int main(void)
{
    return outer(3) == 0;
}
