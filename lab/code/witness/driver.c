/* Executes single instructions from random states and reports each state before and after.

   Standard input has cases: struct request, then the words of what is claimed of the instruction (claims.h).  Standard
   output has, for each case, what is reported of its steps: each a struct mark, a struct step and the bytes of memory
   that the step changed; and then a struct mark with the numbers of steps.

   A step is one return from a signal handler: the handler puts the random state into the signal frame, the instruction
   runs, and what follows it is a trap.  A jump ends in a trap or in memory that cannot be executed, with the target in
   the program counter.  Memory that an instruction needs and that is not there is mapped and the instruction runs again.
   The stack and the data cannot be written until an instruction does: only then are they looked through behind it.

   Many pointers are a few bytes from another one or from the stack pointer, so that what an instruction reads and what it
   writes overlap.

   Every fourth step begins with the registers that the step before it left: after a compare-and-swap that failed, these
   hold what memory holds, so that the next one succeeds and stores. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define CODE 0x10000000000ULL
#define CODE_SIZE 0x4000
#define AT (CODE + 0x2000)
#define STACK 0x20000000000ULL
#define DATA 0x30000000000ULL
#define AREA 0x4000
#define PAGE 0x1000
#define MAX_EXTRA 6
#define MAX_CHANGED 16384
#define MAX_AGAINST 4
#define CONTINUED 4
#define GENERAL 32
#define VECTORS 32

struct request {
    uint32_t size, steps;
    uint64_t seed;
    uint32_t other_size, other_at;
    uint32_t words;     /* of the claims; 0: each step is reported */
    uint32_t reported;  /* how many of the first steps are reported in any case */
    uint8_t code[16], other[16];
};
struct change { uint64_t address; uint64_t value; };
struct mark { uint32_t is_step, executed, against, unused; };
struct step {
    uint32_t signal, changed, is_against;
    uint32_t is_backward;  /* whether strings are worked on in the direction of lower addresses */
    uint64_t pc;
    uint64_t before[GENERAL], after[GENERAL];
    uint64_t vectors_before[2 * VECTORS], vectors_after[2 * VECTORS];
    uint64_t flags_before, flags_after;  /* the condition code */
};

static struct request request;
static struct step step;
static struct change changes[MAX_CHANGED];
static struct { uint8_t *at; } extra[MAX_EXTRA];
static int extras, started, is_writable;
static uint32_t done;
static struct mark counts;
static uint64_t random_state;
static uint64_t pointer;  /* the last one: the next one may be near it */
static ucontext_t home;
static uint64_t pattern_stack[AREA / 8], pattern_data[AREA / 8];

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* What memory holds at an address that is a multiple of 8; lab/code/witness/driver.py computes the same. */
static uint64_t word_at(uint64_t address) {
    uint64_t word = address * 0x9E3779B97F4A7C15ULL;
    word ^= word >> 29;
    if (word % 4 == 0)  /* pointers, so that what is loaded can be jumped to */
        return DATA + AREA / 2 + (word >> 32) % 512 * 8;
    return word;
}

static void fill(uint8_t *at, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = word_at((uint64_t)(at + i));
        memcpy(at + i, &word, 8);
    }
}

static uint64_t random_value(void) {
    uint64_t word = next_random(), area = word & 1 ? STACK : DATA;
    switch ((word >> 8) % 8) {
    case 0: case 1: return pointer = area + AREA / 2 + (word >> 16) % 128 * 16 - 1024;
    case 2: return pointer += (word >> 16) % 9 * 8 - 32;
    case 3: return word & 2 ? area + AREA / 2 + (word >> 16) % 1024 : pointer + (word >> 16) % 49 - 24;
    case 4: return (word >> 16) % 64;
    case 5: return next_random();
    case 6: return (uint64_t)0 - (word >> 16) % 4;
    default: return (word >> 16) % 4096 * 8;
    }
}

#if defined(__x86_64__)
static const int numbers[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
#define COUNT 16
#define SP 7
#define COUNT_VECTORS 16
#define REGISTER(context, n) (*(uint64_t *)&(context)->uc_mcontext.gregs[numbers[n]])
#define PC(context) (*(uint64_t *)&(context)->uc_mcontext.gregs[REG_RIP])
#define TRAP "\xcc"
#define TRAP_BEHIND 1
static uint64_t *vector(ucontext_t *context, int n) { return (uint64_t *)&context->uc_mcontext.fpregs->_xmm[n]; }
#define FLAGS 0x8D5
#define FLAGS_OF(context) ((context)->uc_mcontext.gregs[REG_EFL] & FLAGS)
#define BACKWARD 0x400
static void flags(ucontext_t *context, uint64_t word) {
    context->uc_mcontext.gregs[REG_EFL] = 0x202 | (word & (FLAGS | BACKWARD));
    step.is_backward = (word & BACKWARD) != 0;
}
#elif defined(__aarch64__)
#define COUNT 32
#define SP 31
#define COUNT_VECTORS 32
#define REGISTER(context, n) (*(uint64_t *)((n) == 31 ? (void *)&(context)->uc_mcontext.sp \
                                                      : (void *)&(context)->uc_mcontext.regs[n]))
#define PC(context) (*(uint64_t *)&(context)->uc_mcontext.pc)
#define TRAP "\x00\x00\x20\xd4"
#define TRAP_BEHIND 0
/* Where SVE is there, its registers are those that count. */
static uint64_t *record(ucontext_t *context, int n, uint32_t wanted) {
    uint8_t *at = (uint8_t *)context->uc_mcontext.__reserved;
    for (;;) {
        uint32_t magic, size;
        memcpy(&magic, at, 4);
        memcpy(&size, at + 4, 4);
        if (!magic || !size)
            return NULL;
        if (magic == wanted && magic == 0x46508001)
            return (uint64_t *)(at + 16 + 16 * n);
        if (magic == wanted && magic == 0x53564501) {
            uint16_t length;
            memcpy(&length, at + 8, 2);
            return size > 16 ? (uint64_t *)(at + 16 + length * n) : NULL;
        }
        at += size;
    }
}
static uint64_t *vector(ucontext_t *context, int n) { return record(context, n, 0x46508001); }
#define FLAGS_OF(context) ((context)->uc_mcontext.pstate & 0xF0000000)
static void flags(ucontext_t *context, uint64_t word) { context->uc_mcontext.pstate = word & 0xF0000000; }
#elif defined(__s390x__)
#define COUNT 16
#define SP 15
#define COUNT_VECTORS 16
#define REGISTER(context, n) (*(uint64_t *)&(context)->uc_mcontext.gregs[n])
#define PC(context) (*(uint64_t *)&(context)->uc_mcontext.psw.addr)
#define TRAP "\x00\x01"
#define TRAP_BEHIND 2
static uint64_t *vector(ucontext_t *context, int n) { return (uint64_t *)&context->uc_mcontext.fpregs.fprs[n]; }
#define FLAGS_OF(context) ((context)->uc_mcontext.psw.mask >> 44 & 3)
static void flags(ucontext_t *context, uint64_t word) {
    context->uc_mcontext.psw.mask = (context->uc_mcontext.psw.mask & ~(3ULL << 44)) | (word & 3) << 44;
}
#endif
#if defined(__s390x__)
#define HALVES 1
#else
#define HALVES 2
#endif

#include "claims.h"

static void begin(ucontext_t *context) {
    int is_continued = done % CONTINUED == CONTINUED - 1 && counts.executed;
    uint64_t sp = pointer = STACK + AREA / 2 + next_random() % 64 * 16;
    step.changed = step.is_against = 0;
    for (int n = 0; n < COUNT; n++)
        step.before[n] = REGISTER(context, n) = is_continued ? step.after[n] : random_value();
    if (!is_continued)
        step.before[SP] = REGISTER(context, SP) = sp;
    for (int n = 0; n < COUNT_VECTORS; n++) {
        uint64_t *at = vector(context, n);
        for (int half = 0; half < HALVES; half++)
            step.vectors_before[2 * n + half] = at[half] = next_random();
#if defined(__aarch64__)
        uint64_t *wide = record(context, n, 0x53564501);
        if (wide)
            memcpy(wide, at, 16);
#endif
    }
    flags(context, next_random());
    step.flags_before = FLAGS_OF(context);
    PC(context) = AT;
    started = 1;
}

static void compare(uint64_t at, const uint64_t *wanted, size_t size) {
    for (size_t i = 0; i < size / 8; i += 4) {
        const uint64_t *found = (const uint64_t *)at + i;
        if (!((found[0] ^ wanted[i]) | (found[1] ^ wanted[i + 1]) | (found[2] ^ wanted[i + 2]) | (found[3] ^ wanted[i + 3])))
            continue;
        const uint8_t *bytes = (const uint8_t *)found, *others = (const uint8_t *)(wanted + i);
        for (size_t n = 0; n < 32; n++)
            if (bytes[n] != others[n] && step.changed < MAX_CHANGED)
                changes[step.changed++] = (struct change){(uint64_t)(bytes + n), bytes[n]};
    }
}

/* Put back what was changed. */
static void restore(uint64_t area, const uint64_t *pattern) {
    for (uint32_t n = 0; n < step.changed; n++)
        if (changes[n].address - area < AREA)
            *(uint8_t *)changes[n].address = ((const uint8_t *)pattern)[changes[n].address - area];
    if (step.changed == MAX_CHANGED && is_writable)
        memcpy((void *)area, pattern, AREA);
}

static int make_writable(uint64_t address) {
    if (is_writable || (address - STACK >= AREA && address - DATA >= AREA))
        return 0;
    is_writable = 1;
    return !mprotect((void *)STACK, AREA, PROT_READ | PROT_WRITE) && !mprotect((void *)DATA, AREA, PROT_READ | PROT_WRITE);
}

static int add_memory(uint64_t address) {
    if (extras >= MAX_EXTRA || address >> 47 || address < 0x100000 || address - CODE < CODE_SIZE)
        return 0;
    uint8_t *page = (uint8_t *)(address & ~(PAGE - 1ULL));
    void *got = mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return 0;
    if (got != page) {
        munmap(got, PAGE);
        return 0;
    }
    fill(page, PAGE);
    extra[extras++].at = page;
    return 1;
}

static void report(void) {
    struct mark mark = {.is_step = 1};
    fwrite(&mark, sizeof mark, 1, stdout);
    fwrite(&step, sizeof step, 1, stdout);
    fwrite(changes, sizeof *changes, step.changed, stdout);
}

static void finish(ucontext_t *context, int number) {
    started = 0;
    step.signal = number;
    step.pc = PC(context);
    step.flags_after = FLAGS_OF(context);
    for (int n = 0; n < COUNT; n++)
        step.after[n] = REGISTER(context, n);
    for (int n = 0; n < COUNT_VECTORS; n++)
        for (int half = 0; half < HALVES; half++)
            step.vectors_after[2 * n + half] = vector(context, n)[half];
    if (is_writable) {
        compare(STACK, pattern_stack, AREA);
        compare(DATA, pattern_data, AREA);
    }
    for (int i = 0; i < extras; i++) {
        static uint64_t pattern[PAGE / 8];
        for (size_t at = 0; at < PAGE / 8; at++)
            pattern[at] = word_at((uint64_t)extra[i].at + 8 * at);
        compare((uint64_t)extra[i].at, pattern, PAGE);
    }
    if (number == SIGTRAP || (number == SIGSEGV && step.pc != AT)) {
        step.is_against = request.words && is_against_claims();
        counts.executed++;
        counts.against += step.is_against;
        if (!request.words || counts.executed <= request.reported || (step.is_against && counts.against <= MAX_AGAINST))
            report();
    }
    restore(STACK, pattern_stack);
    restore(DATA, pattern_data);
    for (int i = 0; i < extras; i++)
        munmap(extra[i].at, PAGE);
    extras = 0;
}

/* Whether a signal is for one of the traps around the instruction, not for the instruction itself. */
static int is_trap(int number, uint64_t at) {
    return (number == SIGTRAP || number == SIGILL) && at + TRAP_BEHIND != AT && at - CODE < CODE_SIZE && (at < AT || at >= AT + request.size)
           && !memcmp((void *)at, TRAP, sizeof TRAP - 1);
}

static void handler(int number, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    if (started) {
        uint64_t address = (uint64_t)info->si_addr;
        if (number == SIGSEGV && PC(context) == AT && address != AT && (make_writable(address) || add_memory(address)))
            return;
        uint64_t trap = PC(context) - TRAP_BEHIND;
        if (is_trap(number, trap)) {
            number = SIGTRAP;
            PC(context) = trap;
        }
        finish(context, number);
        done++;
    }
    if (done == request.steps)
        setcontext(&home);
    begin(context);
}

static void map(uint64_t area, size_t size, int protection) {
    if (mmap((void *)area, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        exit(3);
}

static void put(uint64_t at, const uint8_t *code, size_t size) {
    memcpy((void *)at, code, size);
    __builtin___clear_cache((char *)at, (char *)at + size);
}

static void put_traps(uint64_t at, size_t size) {
    for (size_t i = 0; i < size; i += sizeof TRAP - 1)
        memcpy((uint8_t *)at + i, TRAP, sizeof TRAP - 1);
    __builtin___clear_cache((char *)at, (char *)at + size);
}

int main(void) {
    static uint8_t stack[1 << 16], output[1 << 16];
    setvbuf(stdout, (char *)output, _IOFBF, sizeof output);
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    const int signals[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM, SIGUSR1, SIGSYS};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    map(CODE, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    map(STACK, AREA, PROT_READ | PROT_WRITE);
    map(DATA, AREA, PROT_READ | PROT_WRITE);
    fill((uint8_t *)STACK, AREA);
    fill((uint8_t *)DATA, AREA);
    memcpy(pattern_stack, (void *)STACK, AREA);
    memcpy(pattern_data, (void *)DATA, AREA);
    is_writable = 1;
    put_traps(CODE, CODE_SIZE);
    while (fread(&request, sizeof request, 1, stdin) == 1) {
        if (request.words > MAX_WORDS || fread(words, 8, request.words, stdin) != request.words)
            return 2;
        if (is_writable) {
            mprotect((void *)STACK, AREA, PROT_READ);
            mprotect((void *)DATA, AREA, PROT_READ);
            is_writable = 0;
        }
        put(AT, request.code, request.size);
        put(AT + request.other_at, request.other, request.other_size);
        random_state = request.seed * 2 + 0x9E3779B97F4A7C15ULL;
        done = 0;
        memset(&step, 0, sizeof step);
        memset(&counts, 0, sizeof counts);
        struct itimerval soon = {{0, 200000}, {0, 200000}}, never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &soon, NULL);
        volatile int again = 0;
        getcontext(&home);
        if (!again) {
            again = 1;
            raise(SIGUSR1);
        }
        setitimer(ITIMER_REAL, &never, NULL);
        put_traps(AT, 16);
        put_traps((AT + request.other_at) & ~3ULL, request.other_size ? 20 : 0);
        fwrite(&counts, sizeof counts, 1, stdout);
        fflush(stdout);
    }
    return 0;
}
