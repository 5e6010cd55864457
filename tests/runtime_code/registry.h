/* libunwind's interface for code that is generated at run time: Debian's own where it is installed for the machine,
   else the same declarations and a list of this program's own (registry.c). */

#ifndef REGISTRY_H
#define REGISTRY_H

#ifndef OWN_REGISTRY
#include <libunwind.h>
#else
#include <stdint.h>

typedef uint64_t unw_word_t;

enum {
    UNW_DYN_STOP, UNW_DYN_SAVE_REG, UNW_DYN_SPILL_FP_REL, UNW_DYN_SPILL_SP_REL, UNW_DYN_ADD, UNW_DYN_POP_FRAMES,
    UNW_DYN_LABEL_STATE, UNW_DYN_COPY_STATE, UNW_DYN_ALIAS
};

enum { UNW_INFO_FORMAT_DYNAMIC, UNW_INFO_FORMAT_TABLE, UNW_INFO_FORMAT_REMOTE_TABLE };

typedef struct {
    int8_t tag, qp;
    int16_t reg;
    int32_t when;
    unw_word_t val;
} unw_dyn_op_t;

typedef struct unw_dyn_region_info {
    struct unw_dyn_region_info *next;
    int32_t insn_count;
    uint32_t op_count;
    unw_dyn_op_t op[1];
} unw_dyn_region_info_t;

typedef struct unw_dyn_info {
    struct unw_dyn_info *next, *prev;
    unw_word_t start_ip, end_ip, gp;
    int32_t format, pad;
    unw_word_t load_offset;
    union {
        struct {
            unw_word_t name_ptr, handler;
            uint32_t flags;
            int32_t pad0;
            unw_dyn_region_info_t *regions;
        } pi;
        struct {
            unw_word_t name_ptr, segbase, table_len, *table_data;
        } ti;
        struct {
            unw_word_t name_ptr, segbase, table_len, table_data;
        } rti;
    } u;
} unw_dyn_info_t;

typedef struct {
    uint32_t version, generation;
    unw_dyn_info_t *first;
} unw_dyn_info_list_t;

void _U_dyn_register(unw_dyn_info_t *);
void _U_dyn_cancel(unw_dyn_info_t *);
unw_word_t _U_dyn_info_list_addr(void);
#endif

#endif
