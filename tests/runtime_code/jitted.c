/* What jit.c loads: a function that needs no relocation.  Built with frames of two sizes, and with SFrame alone. */

long jitted(long argument, void (*stop)(long));

long jitted(long argument, void (*stop)(long))
{
    volatile long room[ROOM];
    room[0] = argument;
    stop(room[0] + 1);
    return room[0] + 1;
}
