/* Threads in uninterruptible sleep: each waits in vfork for its child, which never ends. */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

static void *hang(void *unused)
{
    (void)unused;
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return 0;
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, 0, hang, 0);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
