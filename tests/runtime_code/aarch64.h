/* Generated functions for AArch64, as those for AMD64.  A directive's time is the number of an instruction. */

#define INDEX_UNIT 4
#include "emit.h"

enum { X19 = 19, X20 = 20, X29 = 29, X30 = 30, SP = 31 };

static void instruction(uint32_t word)
{
    bytes((char *)&word, 4);
}

static void call_stop(void)
{
    uint64_t target = (uint64_t)sample_stop;
    instruction(0xd2800010 | (target & 0xffff) << 5);       /* movz x16, #.. */
    instruction(0xf2a00010 | (target >> 16 & 0xffff) << 5); /* movk x16, #.., lsl #16 */
    instruction(0xf2c00010 | (target >> 32 & 0xffff) << 5);
    instruction(0xf2e00010 | (target >> 48 & 0xffff) << 5);
    instruction(0xd63f0200);                                /* blr x16 */
}

#define X19_FROM_ARGUMENT() instruction(0xaa0003f3) /* mov x19, x0 */
#define RESULT_FROM_X19() instruction(0x91000660)   /* add x0, x19, #1 */
#define LOAD_X19() instruction(0xf9400bf3)          /* ldr x19, [sp, #16] */
#define LOAD_X20() instruction(0xf9400bf4)          /* ldr x20, [sp, #16] */
#define RET() instruction(0xd65f03c0)

/* sub sp, sp, #48; str x30, [sp, #40] */
static void allocate(void)
{
    say(UNW_DYN_ADD, now(), SP, -48);
    instruction(0xd100c3ff);
    say(UNW_DYN_SPILL_SP_REL, now(), X30, 40);
    instruction(0xf90017fe);
}

static void save_x19(void)
{
    say(UNW_DYN_SPILL_SP_REL, now(), X19, 16);
    instruction(0xf9000bf3); /* str x19, [sp, #16] */
}

#define LOAD_X30() instruction(0xf94017fe) /* ldr x30, [sp, #40] */
#define FREE() instruction(0x9100c3ff)     /* add sp, sp, #48 */

static void release(void)
{
    LOAD_X30();
    say(UNW_DYN_ADD, now(), SP, 48);
    FREE();
    RET();
}

static void make_spills(void)
{
    begin_function();
    void *start = here;
    allocate();
    say(UNW_DYN_SPILL_SP_REL, now(), X19, 16);
    say(UNW_DYN_SPILL_SP_REL, now(), X20, 24);
    instruction(0xa90153f3); /* stp x19, x20, [sp, #16] */
    X19_FROM_ARGUMENT();
    instruction(0xd2819994); /* mov x20, #0xccc */
    call_stop();
    RESULT_FROM_X19();
    instruction(0xa94153f3); /* ldp x19, x20, [sp, #16] */
    release();
    end_function("spills", start);
}

static void make_frame_pointer(void)
{
    begin_function();
    void *start = here;
    say(UNW_DYN_SPILL_SP_REL, now(), X29, 0);
    say(UNW_DYN_SPILL_SP_REL, now(), X30, 8);
    say(UNW_DYN_ADD, now(), SP, -48);
    instruction(0xa9bd7bfd); /* stp x29, x30, [sp, #-48]! */
    say(UNW_DYN_SAVE_REG, now(), SP, X29);
    instruction(0x910003fd); /* mov x29, sp */
    say(UNW_DYN_SPILL_FP_REL, now(), X19, 16);
    instruction(0xf9000bf3); /* str x19, [sp, #16] */
    X19_FROM_ARGUMENT();
    instruction(0xd100c3ff); /* sub sp, sp, #48, of which nothing is said */
    call_stop();
    RESULT_FROM_X19();
    instruction(0x910003bf); /* mov sp, x29 */
    LOAD_X19();
    say(UNW_DYN_POP_FRAMES, now(), 0, 1);
    instruction(0xa8c37bfd); /* ldp x29, x30, [sp], #48 */
    RET();
    end_function("frame_pointer", start);
}

static void make_in_register(void)
{
    begin_function();
    void *start = here;
    allocate();
    say(UNW_DYN_SPILL_SP_REL, now(), X20, 16);
    instruction(0xf9000bf4); /* str x20, [sp, #16] */
    say(UNW_DYN_SAVE_REG, now(), X19, X20);
    instruction(0xaa1303f4); /* mov x20, x19 */
    X19_FROM_ARGUMENT();
    call_stop();
    RESULT_FROM_X19();
    say(UNW_DYN_SAVE_REG, now(), X20, X19);
    instruction(0xaa1403f3); /* mov x19, x20 */
    LOAD_X20();
    release();
    end_function("in_register", start);
}

static void make_two_exits(void)
{
    begin_function();
    void *start = here;
    allocate();
    save_x19();
    X19_FROM_ARGUMENT();
    say(UNW_DYN_LABEL_STATE, -1, 0, 7);
    begin_region();
    call_stop();
    instruction(0xf100167f); /* cmp x19, #5 */
    instruction(0x540000c0); /* b.eq behind the epilogue */
    RESULT_FROM_X19();
    LOAD_X19();
    release();
    begin_region();
    say(UNW_DYN_COPY_STATE, -1, 0, 7);
    call_stop();
    RESULT_FROM_X19();
    LOAD_X19();
    release();
    end_function("two_exits", start);
}

static void make_shared(void)
{
    unw_dyn_region_info_t *regions = 0;
    for (int calls = 1; calls <= 2; calls++) {
        begin_function();
        void *start = here;
        allocate();
        save_x19();
        X19_FROM_ARGUMENT();
        unw_dyn_region_info_t *prologue = region;
        begin_region(); /* of the body, which none is for */
        for (int call = 0; call < calls; call++)
            call_stop();
        RESULT_FROM_X19();
        LOAD_X19();
        LOAD_X30();
        begin_region();
        say(UNW_DYN_POP_FRAMES, now(), 0, 1);
        FREE();
        RET();
        region->insn_count = -now();
        prologue->next = region;
        regions = regions ? regions : prologue;
        const char *name = calls == 1 ? "shared_short" : "shared_long";
        register_procedure(name, start, here, regions);
        callable(name, start);
    }
}

/* The CFI of `original`. */
#define CIE "zR\0\4\x78\x1e\1\x1b\x0c\x1f\0"
#define ROWS "\x41\x0e\x20\x9d\4\x9e\3\x41\x93\2\x49\x0e\0\xdd\xde"

static void make_all(void)
{
    make_spills();
    make_frame_pointer();
    make_in_register();
    make_two_exits();
    make_shared();
    make_copies(CIE, sizeof CIE - 1, ROWS, sizeof ROWS - 1);
}
