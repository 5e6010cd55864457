/* What free_start.S gives to, and expects of, a program without a C library. */
#ifndef FREE_H
#define FREE_H

long free_write(long descriptor, const void *text, long length);

/* The arguments are as the kernel leaves them: their number, then pointers to them. Returns the exit status. */
int free_main(const long *arguments);

/* The first argument as a number, or what stands for it when there is none. */
static inline int free_number(const long *arguments, int otherwise)
{
    if (arguments[0] < 2)
        return otherwise;
    int number = 0;
    for (const char *digit = (const char *)arguments[2]; *digit >= '0' && *digit <= '9'; digit++)
        number = number * 10 + (*digit - '0');
    return number;
}

#define FREE_PRINT(text) free_write(1, text, sizeof text - 1)

#endif
