/*
 * A server under load: worker threads that answer requests over TCP, a process that sends them, and a thread that does
 * nothing but look at the clock: when it is stopped, it sees a gap. What it waited for a processor is taken off.
 *
 * The argument is the number of threads. For each line on standard input, a line is printed: the longest stop and the
 * sum of all stops since the last line in nanoseconds, and the number of requests that were answered.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NOTICED = 50000, DEEPEST = 24 };

static int listening;
static atomic_long longest, total, answered;

__attribute__((noipa)) static uint32_t digest(uint32_t value, int level)
{
    if (level)
        value = digest(value * 2654435761u + (uint32_t)level, level - 1) ^ (uint32_t)level;
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

static void *serve(void *unused)
{
    for (;;) {
        uint32_t request;
        int client = accept(listening, NULL, NULL);
        if (client < 0)
            continue;
        if (read(client, &request, sizeof request) == sizeof request) {
            for (int round = 0; round < 200; round++)
                request = digest(request, DEEPEST);
            if (write(client, &request, sizeof request) == sizeof request)
                atomic_fetch_add(&answered, 1);
        }
        close(client);
    }
    return unused;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* How long this thread has waited for a processor so far, in nanoseconds. */
static int64_t waited(int file)
{
    char text[128] = "";
    long long run = 0, delay = 0;
    if (pread(file, text, sizeof text - 1, 0) > 0)
        sscanf(text, "%lld %lld", &run, &delay);
    return delay;
}

static void *watch(void *unused)
{
    int file = open("/proc/thread-self/schedstat", O_RDONLY);
    int64_t delay = waited(file), last = now();
    for (;;) {
        int64_t time = now();
        if (time - last > NOTICED) {
            int64_t later = waited(file), stopped = time - last - (later - delay);
            delay = later;
            if (stopped > NOTICED) {
                atomic_fetch_add(&total, stopped);
                if (stopped > atomic_load(&longest))
                    atomic_store(&longest, stopped);
            }
            time = now();
        }
        last = time;
    }
    return unused;
}

static void send_requests(struct sockaddr_in address)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t number = 0;; number++) {
        uint32_t answer;
        int server = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(server, (struct sockaddr *)&address, sizeof address) == 0 &&
            write(server, &number, sizeof number) == sizeof number)
            (void)!read(server, &answer, sizeof answer);
        close(server);
    }
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char line[16];
    pthread_t thread;
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, size) || listen(listening, 128) ||
        getsockname(listening, (struct sockaddr *)&address, &size))
        return 1;
    if (fork() == 0)
        send_requests(address);
    for (int number = 0; number < threads - 2; number++)
        pthread_create(&thread, NULL, serve, NULL);
    pthread_create(&thread, NULL, watch, NULL);
    while (fgets(line, sizeof line, stdin)) {
        printf("%ld %ld %ld\n", atomic_exchange(&longest, 0), atomic_exchange(&total, 0), atomic_load(&answered));
        fflush(stdout);
    }
    return 0;
}
