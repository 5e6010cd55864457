/* Waits for a debugger to attach, some frames deep. */
#include <sys/prctl.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))

KEEP int wait_here(int seconds)
{
    volatile int room[10];
    room[seconds & 7] = (int)write(1, "ready\n", 6);
    sleep((unsigned)seconds);
    return room[seconds & 7];
}

KEEP int middle(int seconds)
{
    volatile int room[30];
    room[seconds & 15] = wait_here(seconds);
    return room[seconds & 15];
}

int main(void)
{
    /* Any process may attach, where the system otherwise lets only a parent do so. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    return middle(3600) != 6;
}
