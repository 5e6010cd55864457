/* Many threads that wait, each so many frames deep: the arguments are their number and the depth of descend. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t ready, never;

__attribute__((noipa)) int descend(int level)
{
    int result = 1;
    if (level > 1) {
        result += descend(level - 1);
    } else {
        pthread_barrier_wait(&ready);
        pthread_barrier_wait(&never);
    }
    __asm__ volatile("" : "+r"(result) : : "memory");
    return result;
}

static void *work(void *depth)
{
    return (void *)(intptr_t)descend((int)(intptr_t)depth);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1, depth = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t thread;
    pthread_barrier_init(&ready, NULL, threads + 1);
    pthread_barrier_init(&never, NULL, threads + 1);
    for (int number = 0; number < threads; number++)
        pthread_create(&thread, NULL, work, (void *)(intptr_t)depth);
    pthread_barrier_wait(&ready);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
