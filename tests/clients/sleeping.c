/* A process to attach to: three threads and main wait, each at another depth. */
#include <pthread.h>
#include <unistd.h>

enum { WORKERS = 3 };

static volatile int sum;

__attribute__((noinline)) int down(int depth, long token) {
  long mine = token * 3 + depth;
  int below = depth ? down(depth - 1, mine) : pause();
  sum += (int)mine;
  return below + (int)(mine & 1);
}

static void *worker(void *argument) { return (void *)(long)down((int)(long)argument, 7); }

int main(void) {
  pthread_t threads[WORKERS];
  for (long i = 0; i < WORKERS; i++)
    pthread_create(&threads[i], NULL, worker, (void *)(i * 3));
  return down(5, 11);
}
