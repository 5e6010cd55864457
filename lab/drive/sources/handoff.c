/* Threads that take turns, so that at each moment one alone can run and sessions repeat themselves. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))
enum { THREADS = 3, ROUNDS = 3 };

static sem_t turns[THREADS + 1];
static sem_t started;
static volatile int sum;

OUT_OF_LINE int work(int id, int round) {
  int part = id * 10 + round;
  sum += part;
  return part;
}

OUT_OF_LINE int nested(int depth, int id) {
  int mine = depth + id;
  if (depth == 0)
    return work(id, mine);
  int below = nested(depth - 1, id);
  return below + mine;
}

/* Whoever passed the turn on is waiting for its own before this thread goes on. */
OUT_OF_LINE void await(int id) {
  while (sem_wait(&turns[id]) != 0)
    ;
  usleep(5000);
}

OUT_OF_LINE void pass_on(int next) { sem_post(&turns[next]); }

OUT_OF_LINE int round_of(int id, int round) {
  int got = nested(round + 1, id);
  return got + work(id, round);
}

static void *body(void *argument) {
  int id = (int)(long)argument;
  long result = 0;
  sem_post(&started);
  for (int round = 0; round < ROUNDS; round++) {
    await(id);
    result += round_of(id, round);
    pass_on((id + 1) % (THREADS + 1));
  }
  return (void *)result;
}

int main(void) {
  pthread_t threads[THREADS];
  sem_init(&started, 0, 0);
  sem_init(&turns[0], 0, 0);
  for (long id = 1; id <= THREADS; id++) {
    sem_init(&turns[id], 0, 0);
    pthread_create(&threads[id - 1], NULL, body, (void *)id);
    while (sem_wait(&started) != 0)
      ;
    usleep(5000);
  }
  for (int round = 0; round < ROUNDS; round++) {
    printf("round %d: %d\n", round, round_of(0, round));
    pass_on(1);
    await(0);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  printf("%d\n", sum);
  return 0;
}
