/* Waits on the stack of a fiber, which is at higher addresses than the stack of the thread that started it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK (1 << 20)
#define ROOM (8 << 20)

int run_on(void *top, int (*function)(int), int value);

static char *region;

__attribute__((noinline)) int body(int value)
{
    volatile char room[100];
    room[value & 31] = 1;
    puts("ready");
    fflush(stdout);
    pause();
    return room[3];
}

__attribute__((noinline)) int starts(int value)
{
    volatile char room[50];
    room[value & 31] = 1;
    return run_on(region + ROOM, body, value) + room[2];
}

static void *thread(void *unused)
{
    (void)unused;
    return (void *)(long)starts(4);
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

/* Calls a function on another stack. */
__asm__(".text\n"
        ".globl run_on\n"
        ".type run_on, @function\n"
        "run_on: .cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register rbp\n"
        "mov %rdi, %rsp\n"
        "mov %rdx, %rdi\n"
        "call *%rsi\n"
        "mov %rbp, %rsp\n"
        "pop %rbp\n"
        ".cfi_def_cfa rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size run_on, . - run_on\n");
