/* Generated functions for AMD64.  Each changes the callee-saved registers that it has saved, calls sample_stop, and
   returns its argument plus one. */

#define INDEX_UNIT 1
#include "emit.h"

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13 = 13 };

static void push(const char *code, size_t size, int reg)
{
    say(UNW_DYN_SPILL_SP_REL, now(), reg, 0);
    say(UNW_DYN_ADD, now(), RSP, -8);
    bytes(code, size);
}

static void pop(const char *code, size_t size)
{
    say(UNW_DYN_ADD, now(), RSP, 8);
    bytes(code, size);
}

#define PUSH_RBX() push("\x53", 1, RBX)
#define PUSH_RBP() push("\x55", 1, RBP)
#define PUSH_R12() push("\x41\x54", 2, R12)
#define PUSH_R13() push("\x41\x55", 2, R13)
#define POP_RBX() pop("\x5b", 1)
#define POP_RBP() pop("\x5d", 1)
#define POP_R12() pop("\x41\x5c", 2)
#define POP_R13() pop("\x41\x5d", 2)
#define RET() EMIT("\xc3")

static void move_sp(signed char by)
{
    say(UNW_DYN_ADD, now(), RSP, by);
    bytes((char[]){0x48, 0x83, 0xc4, by}, 4); /* add $by,%rsp */
}

static void call_stop(void)
{
    long target = (long)sample_stop;
    EMIT("\x48\xb8"); /* movabs $target,%rax */
    bytes((char *)&target, 8);
    EMIT("\xff\xd0"); /* call *%rax */
}

static void jump(void *target)
{
    int distance = (unsigned char *)target - (here + 5);
    EMIT("\xe9"); /* jmp target */
    bytes((char *)&distance, 4);
}

#define WIPE_RBP() EMIT("\x48\xc7\xc5\xbf\x0b\x00\x00") /* mov $0xbbf,%rbp */
#define WIPE_R12() EMIT("\x49\xc7\xc4\xc1\x0c\x00\x00")
#define RESULT_FROM_RBX() EMIT("\x48\x8d\x43\x01")      /* lea 1(%rbx),%rax */
#define RBX_FROM_ARGUMENT() EMIT("\x48\x89\xfb")        /* mov %rdi,%rbx */

/* Pushes and pops alone, rbp a register like others: ADD and SPILL_SP_REL. */
static void make_spills(void)
{
    begin_function();
    void *start = here;
    PUSH_RBP();
    PUSH_RBX();
    PUSH_R12();
    move_sp(-16);
    WIPE_RBP();
    RBX_FROM_ARGUMENT();
    WIPE_R12();
    call_stop();
    RESULT_FROM_RBX();
    move_sp(16);
    POP_R12();
    POP_RBX();
    POP_RBP();
    RET();
    end_function("spills", start);
}

/* A frame pointer, and stack that no directive tells of: SAVE_REG of SP, SPILL_FP_REL, POP_FRAMES. */
static void make_frame_pointer(void)
{
    begin_function();
    void *start = here;
    PUSH_RBP();
    say(UNW_DYN_SAVE_REG, now(), RSP, RBP);
    EMIT("\x48\x89\xe5");             /* mov %rsp,%rbp */
    EMIT("\x48\x83\xec\x20");         /* sub $32,%rsp */
    say(UNW_DYN_SPILL_FP_REL, now(), RBX, -8);
    EMIT("\x48\x89\x5d\xf8");         /* mov %rbx,-8(%rbp) */
    RBX_FROM_ARGUMENT();
    EMIT("\x48\x83\xec\x40");         /* sub $64,%rsp, of which nothing is said */
    call_stop();
    RESULT_FROM_RBX();
    EMIT("\x48\x8b\x5d\xf8");         /* mov -8(%rbp),%rbx */
    say(UNW_DYN_POP_FRAMES, now(), 0, 1);
    EMIT("\xc9");                     /* leave */
    RET();
    end_function("frame_pointer", start);
}

/* The same with another register than rbp, from which SP is restored as well: SAVE_REG in both directions. */
static void make_other_pointer(void)
{
    begin_function();
    void *start = here;
    PUSH_R12();
    say(UNW_DYN_SAVE_REG, now(), RSP, R12);
    EMIT("\x49\x89\xe4");             /* mov %rsp,%r12 */
    EMIT("\x48\x83\xec\x20");         /* sub $32,%rsp, of which nothing is said */
    say(UNW_DYN_SPILL_FP_REL, now(), RBX, -8);
    EMIT("\x49\x89\x5c\x24\xf8");     /* mov %rbx,-8(%r12) */
    RBX_FROM_ARGUMENT();
    call_stop();
    RESULT_FROM_RBX();
    EMIT("\x49\x8b\x5c\x24\xf8");     /* mov -8(%r12),%rbx */
    say(UNW_DYN_SAVE_REG, now(), R12, RSP);
    EMIT("\x4c\x89\xe4");             /* mov %r12,%rsp */
    POP_R12();
    RET();
    end_function("other_pointer", start);
}

/* One callee-saved register saved in another, and back: SAVE_REG. */
static void make_in_register(void)
{
    begin_function();
    void *start = here;
    PUSH_R13();
    say(UNW_DYN_SAVE_REG, now(), RBX, R13);
    EMIT("\x49\x89\xdd");             /* mov %rbx,%r13 */
    RBX_FROM_ARGUMENT();
    call_stop();
    RESULT_FROM_RBX();
    say(UNW_DYN_SAVE_REG, now(), R13, RBX);
    EMIT("\x4c\x89\xeb");             /* mov %r13,%rbx */
    POP_R13();
    RET();
    end_function("in_register", start);
}

/* An epilogue in the middle, with code of the body behind it: LABEL_STATE and COPY_STATE. */
static void make_two_exits(void)
{
    begin_function();
    void *start = here;
    PUSH_RBX();
    move_sp(-32);
    RBX_FROM_ARGUMENT();
    say(UNW_DYN_LABEL_STATE, -1, 0, 7);
    begin_region();
    call_stop();
    EMIT("\x48\x83\xfb\x05");         /* cmp $5,%rbx */
    EMIT("\x74\x0a");                 /* je behind the epilogue */
    RESULT_FROM_RBX();
    move_sp(32);
    POP_RBX();
    RET();
    begin_region();
    say(UNW_DYN_COPY_STATE, -1, 0, 7);
    call_stop();
    RESULT_FROM_RBX();
    move_sp(32);
    POP_RBX();
    RET();
    end_function("two_exits", start);
}

/* Two prologues, one inside the other, undone by one instruction: POP_FRAMES of 2. */
static void make_nested(void)
{
    begin_function();
    void *start = here;
    PUSH_RBX();
    RBX_FROM_ARGUMENT();
    call_stop();
    begin_region();
    PUSH_R12();
    move_sp(-24);
    WIPE_R12();
    call_stop();
    RESULT_FROM_RBX();
    EMIT("\x4c\x8b\x64\x24\x18");     /* mov 24(%rsp),%r12 */
    EMIT("\x48\x8b\x5c\x24\x20");     /* mov 32(%rsp),%rbx */
    say(UNW_DYN_POP_FRAMES, now(), 0, 2);
    EMIT("\x48\x83\xc4\x28");         /* add $40,%rsp */
    begin_region();
    RET();
    end_function("nested", start);
}

/* The directives of a region in the opposite order, with predicates that mean nothing here. */
static void reverse_directives(void)
{
    unsigned count = 0;
    while (region->op[count].tag != UNW_DYN_STOP)
        count++;
    for (unsigned low = 0; low < count / 2; low++) {
        unw_dyn_op_t op = region->op[low];
        region->op[low] = region->op[count - 1 - low];
        region->op[count - 1 - low] = op;
    }
    for (unsigned at = 0; at < count; at++)
        region->op[at].qp = at + 1;
    /* Behind a STOP anything may stand. */
    region->op[count + 1] = (unw_dyn_op_t){99, 0, 0, 0, 0};
}

static void make_unordered(void)
{
    begin_function();
    void *start = here;
    PUSH_R12();
    PUSH_RBX();
    move_sp(-24);
    WIPE_R12();
    RBX_FROM_ARGUMENT();
    call_stop();
    RESULT_FROM_RBX();
    move_sp(24);
    POP_RBX();
    POP_R12();
    RET();
    reverse_directives();
    end_function("unordered", start);
}

/* Code that is moved out of the way begins in the middle of a frame: an empty region sets up the state. */
static void make_outlined(void)
{
    begin_function();
    void *cold = here;
    say(UNW_DYN_ADD, 0, RSP, -24);
    say(UNW_DYN_SPILL_SP_REL, 0, RBX, 16);
    begin_region();
    call_stop();
    RESULT_FROM_RBX();
    move_sp(16);
    POP_RBX();
    RET();
    end_part("outlined_cold", cold);

    begin_function();
    void *start = here;
    PUSH_RBX();
    move_sp(-16);
    RBX_FROM_ARGUMENT();
    jump(cold);
    end_function("outlined", start);
}

/* One list of regions for two procedures whose bodies differ: the last region has a negative length. */
static void make_shared(void)
{
    unw_dyn_region_info_t *regions = 0;
    for (int calls = 1; calls <= 2; calls++) {
        begin_function();
        void *start = here;
        PUSH_RBX();
        move_sp(-16);
        RBX_FROM_ARGUMENT();
        unw_dyn_region_info_t *prologue = region;
        begin_region(); /* of the body, which none is for */
        for (int call = 0; call < calls; call++)
            call_stop();
        RESULT_FROM_RBX();
        EMIT("\x48\x8b\x5c\x24\x10"); /* mov 16(%rsp),%rbx */
        begin_region();
        say(UNW_DYN_POP_FRAMES, now(), 0, 1);
        EMIT("\x48\x83\xc4\x18");     /* add $24,%rsp */
        RET();
        region->insn_count = -now();
        prologue->next = region;
        regions = regions ? regions : prologue;
        const char *name = calls == 1 ? "shared_short" : "shared_long";
        register_procedure(name, start, here, regions);
        callable(name, start);
    }
}

static void make_parts_of_alias(void)
{
    /* Its prologue alone, and an epilogue of another kind. */
    begin_function();
    void *start = here;
    say(UNW_DYN_ALIAS, -1, 0, (long)original);
    bytes(original, original_body - original);
    begin_region();
    call_stop();
    RESULT_FROM_RBX();
    EMIT("\x48\x8b\x5c\x24\x10");     /* mov 16(%rsp),%rbx */
    move_sp(24);
    RET();
    end_function("alias_prologue", start);

    /* From the middle on: an empty region has the state of the place. */
    begin_function();
    void *cold = here;
    say(UNW_DYN_ALIAS, -1, 0, (long)original_body);
    begin_region();
    call_stop();
    RESULT_FROM_RBX();
    move_sp(16);
    POP_RBX();
    RET();
    end_part("alias_cold", cold);

    begin_function();
    start = here;
    say(UNW_DYN_ALIAS, -1, 0, (long)original);
    bytes(original, original_body - original);
    jump(cold);
    end_function("alias_outlined", start);
}

/* The CFI of `original`. */
#define CIE "zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1"
#define ROWS "\x41\x0e\x10\x83\2\x44\x0e\x20\x57\x0e\x10\x41\x0e\x08"

static void make_all(void)
{
    make_spills();
    make_frame_pointer();
    make_other_pointer();
    make_in_register();
    make_two_exits();
    make_nested();
    make_unordered();
    make_outlined();
    make_shared();
    make_parts_of_alias();
    make_copies(CIE, sizeof CIE - 1, ROWS, sizeof ROWS - 1);
}
