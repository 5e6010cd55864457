/* The library that dlopen.c loads, built twice: PLUGIN_ROOM is the size of the frame in each. */

#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

int plugin_run(int (*callback)(int), int value)
{
    volatile char room[PLUGIN_ROOM];
    room[value & 15] = (char)value;
    int result = callback(value);
    OPAQUE(result);
    return result + room[value & 15];
}
