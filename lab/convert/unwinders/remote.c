/* Prints the names of the functions in the stack of a process by libunwind-ptrace. */
#include <libunwind-ptrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int count, char **arguments)
{
    pid_t process = count > 1 ? atoi(arguments[1]) : 0;
    unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
    unw_cursor_t cursor;
    unw_word_t offset;
    char name[100];
    int left = 60;

    if (ptrace(PTRACE_ATTACH, process, 0, 0) < 0 || waitpid(process, 0, 0) != process)
        return 1;
    unw_init_remote(&cursor, space, _UPT_create(process));
    do {
        if (!unw_get_proc_name(&cursor, name, sizeof name, &offset))
            puts(name);
    } while (--left && unw_step(&cursor) > 0);
    return 0;
}
