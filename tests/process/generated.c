/* Two functions that are generated at run time, with frame pointers; one calls the other, which waits. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void code(void *, void *);

static void say_and_wait(void)
{
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

static void run_generated(void)
{
    /* push %rbp; mov %rsp,%rbp; push %rax (twice); call *%rdi, or *%rsi; leave; ret */
    static const unsigned char outer[] = {0x55, 0x48, 0x89, 0xe5, 0x50, 0x50, 0xff, 0xd7, 0xc9, 0xc3};
    static const unsigned char inner[] = {0x55, 0x48, 0x89, 0xe5, 0x50, 0x50, 0xff, 0xd6, 0xc9, 0xc3};
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, outer, sizeof outer);
    memcpy(memory + 64, inner, sizeof inner);
    ((code *)memory)(memory + 64, say_and_wait);
}

static void *thread(void *unused)
{
    run_generated();
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t started;
    (void)arguments;
    if (count == 1)
        run_generated();
    /* With an argument, another thread does it, and the main thread ends. */
    pthread_create(&started, NULL, thread, NULL);
    pthread_exit(NULL);
}
