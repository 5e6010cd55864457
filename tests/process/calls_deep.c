int outer(int);

int main(void)
{
    return outer(0) + 1;
}
