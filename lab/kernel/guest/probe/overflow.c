/* A module with a kernel thread whose stack overflows. */
#include <linux/kthread.h>
#include <linux/module.h>

static noinline int recurses(volatile char *of_the_caller)
{
    volatile char local[1000];
    local[0] = of_the_caller[0];
    return recurses(local) + local[0];
}

static int thread(void *unused)
{
    volatile char local[1] = {1};
    return recurses(local);
}

static int __init overflow_start(void)
{
    kthread_run(thread, NULL, "overflow");
    return 0;
}

module_init(overflow_start);
MODULE_LICENSE("GPL");
