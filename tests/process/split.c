/* gcc -fsplit-stack: a function that needs more stack continues on a new piece, at higher addresses than the thread's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK (100 << 10)
#define LOWEST (1 << 20)
#define ROOM (64 << 20)

static char *region;

__attribute__((noinline)) int deep(int value)
{
    volatile char room[60000];
    room[value] = 1;
    if (value > 0)
        return deep(value - 1) + room[value];
    puts("ready");
    fflush(stdout);
    pause();
    return room[3];
}

static void *thread(void *unused)
{
    (void)unused;
    munmap(region + LOWEST, ROOM - LOWEST); /* the new pieces lie here */
    return (void *)(long)deep(4);
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t started;

    region = mmap(0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, region, STACK);
    pthread_create(&started, &attributes, thread, 0);
    pthread_join(started, 0);
    return 0;
}
