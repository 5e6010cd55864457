/* Three threads wait 20 calls deep; prints "ready" when all do. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_barrier_t all;

__attribute__((noinline)) static int deep(int left)
{
    if (left)
        return deep(left - 1) + 1;
    if (pthread_barrier_wait(&all) == PTHREAD_BARRIER_SERIAL_THREAD)
        write(1, "ready\n", 6);
    return pause();
}

static void *thread(void *unused)
{
    (void)unused;
    deep(20);
    return NULL;
}

int main(void)
{
    pthread_t made;
    pthread_barrier_init(&all, NULL, 3);
    pthread_create(&made, NULL, thread, NULL);
    pthread_create(&made, NULL, thread, NULL);
    return deep(20);
}
