/* A library that is loaded many times, as so many copies. */
int answer(int number)
{
    return number + 1;
}
