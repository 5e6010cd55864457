/* Generates functions, registers them with libunwind, and calls them.

   generated [NAME ...]            calls these functions, or all
   generated --cancel              calls `spills` before and after it is cancelled, and after other code took its place
   generated --many COUNT          registers many procedures more, and calls `spills` twice */

#if defined __x86_64__
#include "amd64.h"
#elif defined __aarch64__
#include "aarch64.h"
#elif defined __s390x__
#include "s390x.h"
#endif

static volatile long stops;

__attribute__((noinline, noclone)) void sample_stop(long value)
{
    stops += value;
}

/* The debugger finds here what is called. */
__attribute__((noinline, noclone)) long sample_call(generated *function, long argument)
{
    return function(argument) + 1;
}

static void call(const char *name)
{
    int called = 0;
    for (int at = 0; at < function_count; at++) {
        if (strcmp(name, "all") && strcmp(name, functions[at].name))
            continue;
        called = 1;
        for (long argument = 4; argument < 6; argument++) {
            if (sample_call(functions[at].code, argument) != argument + 2) {
                printf("%s is wrong\n", functions[at].name);
                exit(1);
            }
        }
    }
    if (!called) {
        printf("no function %s\n", name);
        exit(1);
    }
}

__attribute__((noinline)) static void cancel_all(void)
{
    for (int at = 0; at < info_count; at++)
        _U_dyn_cancel(infos[at]);
}

int main(int argc, char **argv)
{
    open_memory();
    make_all();
    __builtin___clear_cache((char *)memory, (char *)here);
    if (argc == 2 && !strcmp(argv[1], "--cancel")) {
        call("spills");
        cancel_all();
        call("spills");
        memset(memory, 0, here - memory);
        here = memory;
        function_count = info_count = 0;
        make_frame_pointer();
        __builtin___clear_cache((char *)memory, (char *)here);
        call("frame_pointer");
    } else if (argc == 3 && !strcmp(argv[1], "--many")) {
        long count = atol(argv[2]);
        unw_dyn_info_t *many = calloc(count, sizeof *many);
        for (long at = 0; at < count; at++) {
            many[at] = *infos[0];
            many[at].start_ip = (unw_word_t)memory + (1 << 20) + 64 * at;
            many[at].end_ip = many[at].start_ip + 64;
            _U_dyn_register(&many[at]);
        }
        call("spills");
        call("spills");
    } else if (argc == 1) {
        call("all");
    } else {
        for (int at = 1; at < argc; at++)
            call(argv[at]);
    }
    return 0;
}
