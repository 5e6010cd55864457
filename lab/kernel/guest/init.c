/* The only program of the guest: system calls, page faults, and children that wait in different ways. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUSY 32 /* How often it does its work before it lets the processor idle. */

/* A parent of vfork waits in state D until its child ends or executes a program. */
static void waits_for_vfork(void)
{
    if (fork() == 0) {
        prctl(PR_SET_NAME, "vforker");
        if (vfork() == 0)
            for (;;)
                pause();
    }
}

static void waits_for_a_pipe(void)
{
    int ends[2];
    char byte;
    if (pipe(ends) == 0 && fork() == 0) {
        prctl(PR_SET_NAME, "reader");
        read(ends[0], &byte, 1);
    }
}

/* Of Debian's kernel for AMD64, a module tells QEMU where VMCOREINFO is. */
static void loads_a_module(void)
{
    int file = open("/module.ko", O_RDONLY);
    if (file < 0)
        return;
    if (syscall(SYS_finit_module, file, "", 0) != 0)
        perror("module.ko");
    close(file);
}

int main(void)
{
    char buffer[256];
    loads_a_module();
    mkdir("/proc", 0755);
    mount("proc", "/proc", "proc", 0, "");
    for (int count = 0; count < 3; count++)
        waits_for_vfork();
    waits_for_a_pipe();
    printf("guest is up\n");
    fflush(stdout);
    for (unsigned count = 1;; count++) {
        int file = open("/proc/self/stat", O_RDONLY);
        read(file, buffer, sizeof buffer);
        close(file);
        volatile char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[0] = 1;
        munmap((void *)page, 4096);
        if (count % BUSY == 0)
            usleep(10000);
    }
}
