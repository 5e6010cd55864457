/* Waits with several threads, each some frames deep.  The first argument chooses: "wait" (the default), "signal" for a
 * thread that waits in a signal handler on a stack of its own, "churn" for threads that come and go. */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))

namespace shop {

template <typename Item> struct Shelf {
    KEEP static int wait(int depth, Item item)
    {
        volatile int room[8];
        room[depth & 7] = depth ? wait(depth - 1, item) : pause();
        return room[depth & 7];
    }
};

KEEP void handle(int)
{
    volatile int result = pause();
    (void)result;
}

KEEP int interrupted(int depth)
{
    volatile int room[8];
    room[depth & 7] = depth ? interrupted(depth - 1) : raise(SIGUSR1);
    return room[depth & 7];
}

KEEP void *clerk(void *argument)
{
    return Shelf<double>::wait(3, 0.5) ? nullptr : argument;
}

KEEP void *brief(void *) { return nullptr; }

} // namespace shop

static pthread_t thread;

int main(int argc, char **argv)
{
    static char stack[65536];
    const char *how = argc > 1 ? argv[1] : "wait";
    /* Any process may attach, where the system otherwise lets only a parent do so. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pthread_create(&thread, nullptr, shop::clerk, nullptr);
    write(1, "ready\n", 6);
    volatile int result = 0;
    if (!strcmp(how, "churn"))
        for (;;) {
            pthread_t other;
            if (!pthread_create(&other, nullptr, shop::brief, nullptr))
                pthread_join(other, nullptr);
        }
    if (!strcmp(how, "signal")) {
        stack_t other = {};
        other.ss_sp = stack, other.ss_size = sizeof stack;
        sigaltstack(&other, nullptr);
        struct sigaction action = {};
        action.sa_handler = shop::handle, action.sa_flags = SA_ONSTACK;
        sigaction(SIGUSR1, &action, nullptr);
        result = shop::interrupted(4);
    }
    result = shop::Shelf<const char *>::wait(2, how);
    return result;
}
