/* Preloaded into a program: stops threads inside functions of a loaded file, for good, so that their stacks can be shown.
 *
 * The file that SFRAME_STOPS names has the path of the loaded file ("-": the executable), and for each thread the offset
 * of a function and a number of instructions.  The thread calls the function, and is traced by itself: after so many
 * instructions the handler of the trap no longer returns.  No system call is carried out; a thread stops before it.  A
 * function that returns, or leaves the code or its stack, is called again for fewer instructions.  Arguments point to
 * memory that is full of pointers to itself.  Beside the file, one with ".stopped" at its end tells where each thread is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 1 << 20, HANDLER_STACK = 1 << 16, MEMORY = 1 << 16, MOST_RANGES = 4096, MOST_STOPS = 512, MOST_TRIES = 8 };

struct stop {
    uintptr_t function, low, high;
    long steps, count;
    int tries, inside, stopped;
    pid_t id;
    uintptr_t pc;
    sem_t go;
    sigjmp_buf again;
};

static struct { uintptr_t start, end; } code[MOST_RANGES];
static struct stop stops[MOST_STOPS];
static int ranges, count;
static char path[4096];
static uintptr_t bias, *memory;
static sem_t next;
static __thread struct stop *current;

extern char returned[];
void traced_call(uintptr_t function, void *argument);
__asm__(".text\n"
        ".type traced_call, @function\n"
        "traced_call:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register rbp\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "mov %rsi, %rdx\n"
        "mov %rsi, %rcx\n"
        "mov %rsi, %r8\n"
        "mov %rsi, %r9\n"
        "and $-16, %rsp\n"
        "pushfq\n"
        "orq $0x100, (%rsp)\n"
        "popfq\n"
        "call *%rax\n"
        "returned:\n"
        "ud2\n"
        ".cfi_endproc\n"
        ".size traced_call, . - traced_call\n");

static int is_code(uintptr_t pc)
{
    for (int i = 0; i < ranges; i++)
        if (code[i].start <= pc && pc + 2 <= code[i].end)
            return 1;
    return 0;
}

static void fewer(long steps)
{
    current->steps = steps;
    siglongjmp(current->again, 1);
}

static void handler(int number, __attribute__((unused)) siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t pc = registers[REG_RIP], sp = registers[REG_RSP];
    struct stop *this = current;
    if (this == NULL || (!this->inside && number != SIGTRAP)) {
        signal(number, SIG_DFL);
        return;
    }
    if (!this->inside && pc != this->function)
        return;
    this->inside = 1;
    if (pc == (uintptr_t)returned)
        fewer(this->count / 2);
    if (!is_code(pc) || sp < this->low || sp >= this->high)
        fewer(this->count - 1);
    int is_system_call = !memcmp((void *)pc, "\x0f\x05", 2) || !memcmp((void *)pc, "\xcd\x80", 2);
    if (number == SIGTRAP && this->count < this->steps && !is_system_call) {
        this->count++;
        return;
    }
    this->pc = pc;
    this->stopped = 1;
    sem_post(&next);
    for (;;)
        pause();
}

__attribute__((noreturn)) static void *call(void *argument)
{
    struct stop *this = current = argument;
    stack_t stack = {.ss_size = HANDLER_STACK};
    pthread_attr_t attributes;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack.ss_sp, &size);
    /* The handler has the lowest part: GDB ends stacks that lead from a higher address to a lower one. */
    sigaltstack(&stack, NULL);
    this->low = (uintptr_t)stack.ss_sp + HANDLER_STACK;
    this->high = (uintptr_t)stack.ss_sp + size;
    this->id = syscall(SYS_gettid);
    sem_post(&next);
    sem_wait(&this->go);
    sigsetjmp(this->again, 1);
    if (this->steps >= 0 && this->tries++ < MOST_TRIES) {
        this->inside = this->count = 0;
        traced_call(this->function, memory + MEMORY / sizeof *memory / 2);
    }
    sem_post(&next);
    for (;;)
        pause();
}

static int look(struct dl_phdr_info *object, __attribute__((unused)) size_t size, void *is_first)
{
    int is_wanted = strcmp(path, "-") == 0 ? *(int *)is_first : strcmp(path, object->dlpi_name) == 0;
    *(int *)is_first = 0;
    if (is_wanted)
        bias = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && ranges < MOST_RANGES) {
            code[ranges].start = object->dlpi_addr + segment->p_vaddr;
            code[ranges].end = code[ranges].start + segment->p_memsz;
            ranges++;
        }
    }
    return 0;
}

__attribute__((constructor)) static void stop_all(void)
{
    const char *name = getenv("SFRAME_STOPS");
    FILE *list = name ? fopen(name, "r") : NULL;
    int is_first = 1;
    if (list == NULL || fscanf(list, "%4095[^\n]", path) != 1)
        exit(2);
    for (; count < MOST_STOPS && fscanf(list, "%lx %ld", &stops[count].function, &stops[count].steps) == 2; count++)
        ;
    fclose(list);
    dl_iterate_phdr(look, &is_first);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* debuggers that are not the parent */
    memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < MEMORY / sizeof *memory; i++)
        memory[i] = (uintptr_t)(memory + MEMORY / sizeof *memory / 2);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (const int *number = (const int[]){SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, 0}; *number; number++)
        sigaction(*number, &action, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    sem_init(&next, 0, 0);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        stops[i].function += bias;
        sem_init(&stops[i].go, 0, 0);
        if (pthread_create(&thread, &attributes, call, &stops[i]))
            exit(3);
        sem_wait(&next);
    }
    for (int i = 0; i < count; i++) {
        sem_post(&stops[i].go);
        sem_wait(&next);
    }
    /* The stopped threads may hold locks of the C library. */
    char line[128], told[4200], whole[4200];
    snprintf(told, sizeof told, "%s.new", name);
    snprintf(whole, sizeof whole, "%s.stopped", name);
    int out = open(told, O_CREAT | O_WRONLY, 0600);
    for (const struct stop *one = stops; one < stops + count; one++) {
        size_t size = snprintf(line, sizeof line, "%d %lx %lx\n", one->id, one->function - bias, one->pc);
        if (one->stopped && write(out, line, size) != (ssize_t)size)
            _exit(4);
    }
    rename(told, whole);
    for (;;)
        pause();
}
