/* A program whose stack, memory or unwind data goes bad while it runs.  The first argument says what. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../samples/sample.h"

enum { STACK = 1 << 20, PAGE = 4096, DEPTH = 40 };

static char *stack;

/* Frames that no walk can get beyond: the saved frame pointer is the frame's own, or lies further in. */
KEEP int damaged(long distance)
{
    void **frame = __builtin_frame_address(0);
    void *saved = frame[0];
    frame[0] = (char *)frame - distance;
    sample_stop(1);
    frame[0] = saved;
    OPAQUE(distance);
    return 1;
}

KEEP int outer(long distance)
{
    int result = damaged(distance);
    OPAQUE(result);
    return result;
}

/* A stack of many pages, of which the outer ones vanish between two stops. */
KEEP int deep(int level)
{
    volatile char room[PAGE];
    room[0] = (char)level;
    int result;
    if (level < DEPTH) {
        result = deep(level + 1);
    } else {
        sample_stop(1);
        /* Not the outermost pages: the thread's own data lie there. */
        munmap(stack + STACK - DEPTH / 2 * PAGE, (DEPTH / 2 - 4) * PAGE);
        sample_stop(2);
        result = level;
        if (result == DEPTH) /* there is nowhere to return to */
            _exit(0);
    }
    OPAQUE(result);
    return result + room[0];
}

static void *on_its_stack(void *unused)
{
    deep(0);
    return unused;
}

static void vanish(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK);
    pthread_create(&thread, &attributes, on_its_stack, NULL);
    pthread_join(thread, NULL);
}

/* Unwind data that is overwritten. */
static int overwrite(struct dl_phdr_info *info, size_t size, void *unused)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == 0x6474e554) { /* PT_GNU_SFRAME */
            char *start = (char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            char *page = (char *)((uintptr_t)start & -(uintptr_t)PAGE);
            size_t length = info->dlpi_phdr[i].p_memsz;
            mprotect(page, start + length - page, PROT_READ | PROT_WRITE);
            memset(start, 0xff, length);
        }
    }
    (void)size, (void)unused;
    return 1; /* the program comes first */
}

static void *spin(void *unused)
{
    for (volatile long turns = 0;; turns++)
        ;
    return unused;
}

KEEP int run(const char *what, char *self)
{
    pthread_t thread;
    if (strcmp(what, "cycle") == 0)
        outer(0);
    else if (strcmp(what, "inward") == 0)
        outer(64);
    else if (strcmp(what, "vanish") == 0)
        vanish();
    else if (strcmp(what, "overwrite") == 0) {
        sample_stop(1);
        dl_iterate_phdr(overwrite, NULL);
        sample_stop(2);
    } else if (strcmp(what, "overwritten") == 0) {
        dl_iterate_phdr(overwrite, NULL);
        sample_stop(1);
    } else if (strcmp(what, "exec") == 0) {
        sample_stop(1);
        execl(self, self, "stop", (char *)NULL);
    } else if (strcmp(what, "fork") == 0) {
        if (fork() == 0)
            sample_stop(1);
        wait(NULL);
    } else if (strcmp(what, "on") == 0) {
        sample_stop(1);
        spin(NULL);
    } else if (strcmp(what, "spin") == 0) {
        pthread_create(&thread, NULL, spin, NULL);
        usleep(100000);
        sample_stop(1);
    } else
        sample_stop(1);
    OPAQUE(what);
    return 0;
}

int main(int argc, char **argv)
{
    return run(argc > 1 ? argv[1] : "", argv[0]);
}
