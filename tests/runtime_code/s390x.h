/* Generated functions for s390x, as those for AMD64.  A directive's time is a byte offset. */

#define INDEX_UNIT 1
#include "emit.h"

enum { R6 = 6, R7 = 7, R11 = 11, R14 = 14, R15 = 15 };

static void call_stop(void)
{
    uint64_t target = (uint64_t)sample_stop;
    EMIT("\xc0\x18"); /* iihf %r1, .. */
    bytes((char *)&target, 4);
    EMIT("\xc0\x19"); /* iilf %r1, .. */
    bytes((char *)&target + 4, 4);
    EMIT("\x0d\xe1"); /* basr %r14, %r1 */
}

#define R6_FROM_ARGUMENT() EMIT("\xb9\x04\x00\x62")     /* lgr %r6, %r2 */
#define RESULT_FROM_R6() EMIT("\x41\x20\x60\x01")       /* la %r2, 1(%r6) */
#define RESTORE() EMIT("\xeb\x6f\xf0\xd0\x00\x04")     /* lmg %r6, %r15, 208(%r15) */
#define RET() EMIT("\x07\xfe")                          /* br %r14 */

/* The caller provides the room to save registers in: 160 bytes from its SP on. */
static void allocate(int first)
{
    for (int reg = first; reg <= R14; reg++)
        say(UNW_DYN_SPILL_SP_REL, now(), reg, 8 * reg);
    bytes((char[]){0xeb, first << 4 | 0xf, 0xf0, 8 * first, 0x00, 0x24}, 6); /* stmg %first, %r15, 8*first(%r15) */
    say(UNW_DYN_ADD, now(), R15, -160);
    EMIT("\xa7\xfb\xff\x60"); /* aghi %r15, -160 */
}

static void make_spills(void)
{
    begin_function();
    void *start = here;
    allocate(R6);
    R6_FROM_ARGUMENT();
    EMIT("\xa7\x79\x07\x77"); /* lghi %r7, 0x777 */
    call_stop();
    RESULT_FROM_R6();
    say(UNW_DYN_ADD, now(), R15, 160);
    RESTORE();
    RET();
    end_function("spills", start);
}

static void make_frame_pointer(void)
{
    begin_function();
    void *start = here;
    allocate(R7);
    say(UNW_DYN_SAVE_REG, now(), R15, R11);
    EMIT("\xb9\x04\x00\xbf");         /* lgr %r11, %r15 */
    EMIT("\xa7\xfb\xff\x60");         /* aghi %r15, -160, of which nothing is said */
    say(UNW_DYN_SPILL_FP_REL, now(), R6, 208);
    EMIT("\xe3\x60\xb0\xd0\x00\x24"); /* stg %r6, 208(%r11) */
    R6_FROM_ARGUMENT();
    call_stop();
    RESULT_FROM_R6();
    say(UNW_DYN_POP_FRAMES, now(), 0, 1);
    EMIT("\xeb\x6f\xb0\xd0\x00\x04"); /* lmg %r6, %r15, 208(%r11) */
    RET();
    end_function("frame_pointer", start);
}

static void make_in_register(void)
{
    begin_function();
    void *start = here;
    allocate(R7);
    say(UNW_DYN_SAVE_REG, now(), R6, R7);
    EMIT("\xb9\x04\x00\x76");         /* lgr %r7, %r6 */
    R6_FROM_ARGUMENT();
    call_stop();
    RESULT_FROM_R6();
    say(UNW_DYN_SAVE_REG, now(), R7, R6);
    EMIT("\xb9\x04\x00\x67");         /* lgr %r6, %r7 */
    say(UNW_DYN_POP_FRAMES, now(), 0, 1);
    EMIT("\xeb\x7f\xf0\xd8\x00\x04"); /* lmg %r7, %r15, 216(%r15) */
    RET();
    end_function("in_register", start);
}

static void make_two_exits(void)
{
    begin_function();
    void *start = here;
    allocate(R6);
    R6_FROM_ARGUMENT();
    say(UNW_DYN_LABEL_STATE, -1, 0, 7);
    begin_region();
    call_stop();
    EMIT("\xa7\x6f\x00\x05"); /* cghi %r6, 5 */
    EMIT("\xa7\x84\x00\x08"); /* je behind the epilogue */
    RESULT_FROM_R6();
    say(UNW_DYN_POP_FRAMES, now(), 0, 1);
    RESTORE();
    RET();
    begin_region();
    say(UNW_DYN_COPY_STATE, -1, 0, 7);
    call_stop();
    RESULT_FROM_R6();
    say(UNW_DYN_POP_FRAMES, now(), 0, 1);
    RESTORE();
    RET();
    end_function("two_exits", start);
}

static void make_shared(void)
{
    unw_dyn_region_info_t *regions = 0;
    for (int calls = 1; calls <= 2; calls++) {
        begin_function();
        void *start = here;
        allocate(R6);
        R6_FROM_ARGUMENT();
        unw_dyn_region_info_t *prologue = region;
        begin_region(); /* of the body, which none is for */
        for (int call = 0; call < calls; call++)
            call_stop();
        RESULT_FROM_R6();
        begin_region();
        say(UNW_DYN_POP_FRAMES, now(), 0, 1);
        RESTORE();
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
#define CIE "zR\0\1\x78\x0e\1\x1b\x0c\x0f\xa0\1"
#define ROWS \
    "\x46\x86\x0e\x87\x0d\x88\x0c\x89\x0b\x8a\x0a\x8b\x09\x8c\x08\x8d\x07\x8e\x06\x8f\x05" \
    "\x44\x0e\xc0\2" \
    "\x62\x0e\xa0\1\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd\xce\xcf"

static void make_all(void)
{
    make_spills();
    make_frame_pointer();
    make_in_register();
    make_two_exits();
    make_shared();
    make_copies(CIE, sizeof CIE - 1, ROWS, sizeof ROWS - 1);
}
