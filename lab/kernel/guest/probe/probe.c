/* A module whose functions are on the stack in a timer, again and again. */
#include <linux/module.h>
#include <linux/timer.h>

static struct timer_list timer;
static int count;

noinline void probe_inner(int how_often)
{
    count += how_often;
    barrier();
}

noinline void probe_outer(int how_often)
{
    probe_inner(how_often + 1);
    barrier();
}

static void probe_expired(struct timer_list *expired)
{
    probe_outer(count);
    mod_timer(expired, jiffies + 1);
}

static int __init probe_start(void)
{
    timer_setup(&timer, probe_expired, 0);
    mod_timer(&timer, jiffies + 1);
    return 0;
}

module_init(probe_start);
MODULE_LICENSE("GPL");
