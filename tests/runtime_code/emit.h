/* A tiny code generator: bytes go into executable memory, and with them the directives that say what they do. */

#ifndef EMIT_H
#define EMIT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "registry.h"

#define ALWAYS 0

/* What generated functions call: the innermost frame of most tests. */
void sample_stop(long value);

typedef long generated(long argument);

static unsigned char *memory, *here;
static unsigned char *region_start;
static unw_dyn_region_info_t *region;
static unw_dyn_region_info_t *first_region;

static void *room(size_t size)
{
    static char bytes[1 << 16] __attribute__((aligned(16)));
    static size_t used;
    void *result = bytes + used;
    used += (size + 15) & ~(size_t)15;
    return result;
}

static void open_memory(void)
{
    memory = mmap(0, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    here = memory;
}

static void bytes(const char *text, size_t size)
{
    memcpy(here, text, size);
    here += size;
}

#define EMIT(literal) bytes(literal, sizeof(literal) - 1)

/* The index of the next instruction in its region. */
static int now(void)
{
    return (here - region_start) / INDEX_UNIT;
}

static void begin_region(void)
{
    unw_dyn_region_info_t *fresh = room(sizeof *fresh + 24 * sizeof(unw_dyn_op_t));
    fresh->op_count = 24;
    if (region) {
        region->insn_count = now();
        region->next = fresh;
    } else {
        first_region = fresh;
    }
    region = fresh;
    region_start = here;
}

/* Directives are in the list in the order of the calls; a STOP is in all that is left of the array. */
static void say(int tag, int when, int reg, long value)
{
    unw_dyn_op_t *op = region->op;
    while (op->tag != UNW_DYN_STOP)
        op++;
    *op = (unw_dyn_op_t){tag, ALWAYS, reg, when, value};
}

static void begin_function(void)
{
    here += -(uintptr_t)here & 15;
    region = 0;
    begin_region();
}

static struct {
    const char *name;
    generated *code;
} functions[32];
static int function_count;

/* Let a function be called by name. */
static void callable(const char *name, void *code)
{
    functions[function_count].name = name;
    functions[function_count++].code = (generated *)code;
}

static unw_dyn_info_t *infos[64];
static int info_count;

static unw_dyn_info_t *new_info(void *start, void *end, int format)
{
    unw_dyn_info_t *info = room(sizeof *info);
    info->start_ip = (unw_word_t)start;
    info->end_ip = (unw_word_t)end;
    info->format = format;
    infos[info_count++] = info;
    return info;
}

static void register_procedure(const char *name, void *start, void *end, unw_dyn_region_info_t *regions)
{
    unw_dyn_info_t *info = new_info(start, end, UNW_INFO_FORMAT_DYNAMIC);
    info->u.pi.name_ptr = (unw_word_t)name;
    info->u.pi.regions = regions;
    _U_dyn_register(info);
}

/* A procedure that others jump to. */
static void end_part(const char *name, void *start)
{
    region->insn_count = now();
    register_procedure(name, start, here, first_region);
}

static void end_function(const char *name, void *start)
{
    end_part(name, start);
    callable(name, start);
}

/* Code with unwind data of its own (original_*.S), to be copied. */
extern char original[], original_body[], original_end[];

static int put_record(int32_t *at, const void *head, size_t head_size, const char *body, size_t size)
{
    memcpy(at + 1, head, head_size);
    memcpy((char *)(at + 1) + head_size, body, size);
    size_t length = head_size + size + (-(head_size + size) & 3); /* the rest is DW_CFA_nop */
    at[0] = length;
    return 1 + length / 4;
}

/* A copy of `original` with DWARF CFI: one CIE, one FDE with the given rows, and a search table of two FDEs. */
static void make_table(const char *name, int format, const char *cie, size_t cie_size, const char *rows, size_t size)
{
    begin_function();
    void *start = here;
    bytes(original, original_end - original);
    int32_t *table = (int32_t *)(here + (-(uintptr_t)here & 7));
    int32_t *cfi = table + 4;
    char zero_and_version[5] = {0, 0, 0, 0, 1};
    int32_t *fde = cfi + put_record(cfi, zero_and_version, sizeof zero_and_version, cie, cie_size);
    /* The address is relative to its own place, in 4 bytes; no augmentation data. */
    int32_t size_of_code = (char *)table - (char *)start;
    int32_t head[3] = {(char *)(fde + 1) - (char *)cfi, (char *)start - (char *)(fde + 2), size_of_code};
    char fde_head[13] = {0};
    memcpy(fde_head, head, 12);
    here = (unsigned char *)(fde + put_record(fde, fde_head, sizeof fde_head, rows, size));
    /* Both numbers of an entry count from the segment base.  The first entry is for code before. */
    char *base = (char *)memory;
    table[0] = -4096;
    table[1] = (char *)cfi - base;
    table[2] = (char *)start - base;
    table[3] = (char *)fde - base;
    unw_dyn_info_t *info = new_info(start, table, format);
    info->u.rti.name_ptr = (unw_word_t)name;
    info->u.rti.segbase = (unw_word_t)base;
    info->u.rti.table_len = 2;
    info->u.rti.table_data = (unw_word_t)table;
    _U_dyn_register(info);
    callable(name, start);
}

/* Copies of `original`, described by reference to it and by CFI. */
static void make_copies(const char *cie, size_t cie_size, const char *rows, size_t size)
{
    begin_function();
    void *start = here;
    say(UNW_DYN_ALIAS, -1, 0, (long)original);
    bytes(original, original_end - original);
    end_function("alias", start);
    make_table("table", UNW_INFO_FORMAT_TABLE, cie, cie_size, rows, size);
    make_table("remote_table", UNW_INFO_FORMAT_REMOTE_TABLE, cie, cie_size, rows, size);
}

#endif
