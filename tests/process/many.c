/* Many threads that wait in the same place, and one that waits elsewhere. */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WORKERS 25

static pthread_barrier_t all;

__attribute__((noinline)) static void *work(void *unused)
{
    prctl(PR_SET_NAME, "worker");
    pthread_barrier_wait(&all);
    pause();
    return unused;
}

__attribute__((noinline)) static void *tick(void *unused)
{
    prctl(PR_SET_NAME, "timer");
    pthread_barrier_wait(&all);
    pause();
    return unused;
}

int main(void)
{
    pthread_t thread;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pthread_barrier_init(&all, 0, WORKERS + 2);
    for (int number = 0; number < WORKERS; number++)
        pthread_create(&thread, 0, work, 0);
    pthread_create(&thread, 0, tick, 0);
    pthread_barrier_wait(&all);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
