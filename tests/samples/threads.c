/* Threads: three wait at a barrier, each at another depth, while the main thread stops. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "sample.h"

enum { WORKERS = 3 };

static pthread_barrier_t ready, release;

KEEP int wait_at(int level, int depth)
{
    int result = 1;
    if (level < depth) {
        result += wait_at(level + 1, depth);
    } else {
        /* Whichever barrier a worker is at when the main thread stops, its frames are the same. */
        pthread_barrier_wait(&ready);
        pthread_barrier_wait(&release);
    }
    OPAQUE(result);
    return result;
}

KEEP void *worker(void *argument)
{
    int depth = (int)(intptr_t)argument;
    return (void *)(intptr_t)wait_at(0, depth);
}

KEEP int stop_among(int workers)
{
    pthread_barrier_wait(&ready);
    sample_stop(workers);
    pthread_barrier_wait(&release);
    OPAQUE(workers);
    return workers;
}

int main(void)
{
    pthread_t threads[WORKERS];
    intptr_t sum = 0;
    pthread_barrier_init(&ready, NULL, WORKERS + 1);
    pthread_barrier_init(&release, NULL, WORKERS + 1);
    for (intptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    stop_among(WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (intptr_t)result;
    }
    printf("threads %d\n", (int)sum);
    return 0;
}
