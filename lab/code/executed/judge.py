"""Executes functions from random states and compares the rows of their CFI with the results."""

from __future__ import annotations

import random
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

from lab.code.executed.stub import GRANULES, Stopped, Stub
from sframe_unwind.code.decode.machines import MACHINES, Machine
from tests.code.assembled import BINUTILS, TARGETS, assemble
from tests.hanging import HANG
from tools.binutils import provide

_MASK = (1 << 64) - 1
_STACK, _DATA = 1 << 16, 1 << 12
_TEXT = "-Ttext-segment=0x5a5a12340000"
"""Address of the program: one whose upper half is not 0."""
_MOST_STEPS = 300
"""Maximum number of steps in one execution of a function."""
_SIGNED = "signed"
"""The key of a row for whether the return address is signed."""
_CERTAIN = 3
"""Number of doubts that make a row wrong."""
_UNSIGNED = (1 << 47) - 1
"""The bits of an address that signing leaves unchanged."""
_ALIGNMENTS = 64
"""Number of multiples of the ABI's alignment by which stack pointers at the entry differ."""
_WINDOW = 512
"""Number of bytes of the stack on either side of the CFA that are read at each step."""

_MACROS = """
    .macro function name
    .globl \\name
    .type \\name,%function
\\name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \\name,.-\\name
    .endm
"""
_HELPERS = {
    "amd64": """
    function helper_keeps; ret; end helper_keeps
    function helper
    mov $1,%eax; mov %rax,%rcx; mov %rax,%rdx; mov %rax,%rsi; mov %rax,%rdi
    mov %rax,%r8; mov %rax,%r9; mov %rax,%r10; mov %rax,%r11; ret
    end helper
    function helper_zeroes_fp; xor %ebp,%ebp; .cfi_undefined %rbp; ret; end helper_zeroes_fp
    function helper_pops_8; ret $8; end helper_pops_8
    function helper_pops_16; ret $16; end helper_pops_16
    function helper_traps; ud2; end helper_traps
    function helper_stores; movq $1,(%rdi); ret; end helper_stores
    function helper_stores_by_part; movl $1,(%rdi); movl $2,4(%rdi); ret; end helper_stores_by_part
    function helper_stores_again; mov %rdi,%rax; movb $1,(%rax); movb $3,5(%rax); ret; end helper_stores_again
    function helper_stores_above; movq $1,8(%rsp); ret; end helper_stores_above
    function helper_stores_higher; movq $1,16(%rsp); ret; end helper_stores_higher
    function helper_stores_second; movq $1,(%rsi); ret; end helper_stores_second
    function helper_stores_far; movq $1,64(%rdi); ret; end helper_stores_far
    function helper_copies; mov %rsi,(%rdi); ret; end helper_copies
    function helper_copies_far; mov %rsi,32(%rdi); ret; end helper_copies_far
    function helper_copies_above; mov %rsi,48(%rsp); ret; end helper_copies_above
    function helper_copies_by_memory; mov (%rdi),%rax; mov %rsi,(%rax); ret; end helper_copies_by_memory
    function helper_stores_by_rbx; movq $1,(%rbx); ret; end helper_stores_by_rbx
    function helper_stores_by_vector; movq %xmm0,%rax; movq $1,(%rax); ret; end helper_stores_by_vector
    function helper_stores_by_stack; mov 8(%rsp),%rax; movq $1,(%rax); ret; end helper_stores_by_stack
    function helper_stores_by_memory; mov (%rdi),%rax; movq $1,(%rax); ret; end helper_stores_by_memory
    function helper_stores_by_two_words; mov (%rdi),%rax; mov (%rax),%rax; movq $1,(%rax); ret
    end helper_stores_by_two_words
    function helper_returns; mov %rdi,%rax; ret; end helper_returns
    function helper_leads_to_stores; jmp helper_stores; end helper_leads_to_stores
    function helper_calls_stores; call helper_stores; ret; end helper_calls_stores
    function helper_jumps_to_stores; jmp *pointer_to_stores(%rip); end helper_jumps_to_stores
    .section .rodata,"a"
    .balign 8
pointer_to_stores: .quad helper_stores
    .text
    function helper_restores
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rdi,%rbx; pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_restores
    function helper_only_saves
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rdi,%rbx; pop %rax; .cfi_adjust_cfa_offset -8; ret
    end helper_only_saves
    function helper_restores_another
    push %rbx; .cfi_adjust_cfa_offset 8; push %rdi; .cfi_adjust_cfa_offset 8
    pop %rbx; .cfi_adjust_cfa_offset -8; pop %rax; .cfi_adjust_cfa_offset -8; ret
    end helper_restores_another
    function helper_restores_on_a_path
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rdi,%rbx; test $3,%sil; je 1f; pop %rbx; .cfi_adjust_cfa_offset -8; ret
1:  .cfi_adjust_cfa_offset 8; pop %rax; .cfi_adjust_cfa_offset -8; ret
    end helper_restores_on_a_path
    function helper_exchanges; xchg %rbx,%rdi; mov %rbx,%rax; xchg %rdi,%rbx; ret; end helper_exchanges
    function helper_exchanges_another; xchg %rbx,%rdi; mov %rbx,%rax; xchg %rax,%rbx; ret; end helper_exchanges_another
    function helper_restores_half
    push %rbx; .cfi_adjust_cfa_offset 8; mov (%rsp),%ebx; pop %rax; .cfi_adjust_cfa_offset -8; ret
    end helper_restores_half
    function helper_overwrites_one_byte
    push %rbx; .cfi_adjust_cfa_offset 8; movb $1,1(%rsp); pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_overwrites_one_byte
    function helper_passes_place_below
    push %rbx; .cfi_adjust_cfa_offset 8; lea -8(%rsp),%rdi; call helper_stores; pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_passes_place_below
    function helper_passes_place
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rsp,%rdi; call helper_stores; pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_passes_place
    function helper_jumps_between
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rdi,%rbx; jmp within_restoring
    end helper_jumps_between
    function helper_is_jumped_into
    push %rbx; .cfi_adjust_cfa_offset 8; xor %ebx,%ebx
within_restoring: pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_is_jumped_into
    function helper_jumps_to_another
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rdi,%rbx; jmp within_restoring_another
    end helper_jumps_to_another
    function helper_is_jumped_into_by_another
    push %r12; .cfi_adjust_cfa_offset 8; xor %r12d,%r12d
within_restoring_another: pop %r12; .cfi_adjust_cfa_offset -8; ret
    end helper_is_jumped_into_by_another
    function helper_copies_rbx; mov %rbx,%rax; ret; end helper_copies_rbx
    function helper_stores_by_rbx_and_index; and $8,%esi; movq $1,(%rbx,%rsi); ret; end helper_stores_by_rbx_and_index
    function helper_stores_by_rbp; movq $1,(%rbp); ret; end helper_stores_by_rbp
    function helper_stores_place_below
    push %rbx; .cfi_adjust_cfa_offset 8; lea -8(%rsp),%rax; mov %rax,(%rdi); mov (%rdi),%rdx; movq $1,(%rdx)
    pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_stores_place_below
    function helper_stores_place
    push %rbx; .cfi_adjust_cfa_offset 8; mov %rsp,%rax; mov %rax,(%rdi); mov (%rdi),%rdx; movq $1,(%rdx); pop %rbx
    .cfi_adjust_cfa_offset -8; ret
    end helper_stores_place
    function helper_stores_place_in_a_variable; push %rbx; .cfi_adjust_cfa_offset 8; mov %rsp,place_in_memory(%rip)
    mov place_in_memory(%rip),%rax; movq $1,(%rax); pop %rbx; .cfi_adjust_cfa_offset -8; ret
    end helper_stores_place_in_a_variable
    function helper_lets_the_system_store; push %rbx; .cfi_adjust_cfa_offset 8; mov $201,%eax; mov %rsp,%rdi
    syscall; pop %rbx; .cfi_adjust_cfa_offset -8; ret; end helper_lets_the_system_store
    function helper_may_leave
    cmp $1,%rdi; je 1f; ret
1:  mov (%rdi),%rbx; mov 8(%rdi),%rdx; mov 16(%rdi),%rsp; .cfi_undefined %rip; jmp *%rdx
    end helper_may_leave
    function helper_leaves_and_returns
    mov %rsp,stack_in_memory(%rip); xor %ebx,%ebx; mov stack_in_memory(%rip),%rsp; jmp *pointer_to_keeps(%rip)
    end helper_leaves_and_returns
    function helper_stores_above_by_jump; jmp helper_stores_above; end helper_stores_above_by_jump
    function helper_stores_above_by_known_address; lea helper_stores_above(%rip),%rax; jmp *%rax
    end helper_stores_above_by_known_address
    function helper_stores_above_by_callee; call helper_stores_higher; ret; end helper_stores_above_by_callee
    function helper_fills_above; lea 8(%rsp),%rdi; mov $1,%ecx; xor %eax,%eax; rep stosq; ret; end helper_fills_above
    function helper_pops_and_jumps
    pop %rax; .cfi_adjust_cfa_offset -8; .cfi_register %rip,%rax; add $8,%rsp; jmp *%rax
    end helper_pops_and_jumps
    function helper_loads_and_jumps
    mov (%rsp),%rax; lea 16(%rsp),%rsp; .cfi_def_cfa %rsp,-8; .cfi_register %rip,%rax; jmp *%rax
    end helper_loads_and_jumps
    function helper_jumps_to_pops_8; jmp helper_pops_8; end helper_jumps_to_pops_8
    function helper_calls_stores_by_rbx
    sub $8,%rsp; .cfi_adjust_cfa_offset 8; call helper_stores_by_rbx; add $8,%rsp; .cfi_adjust_cfa_offset -8; ret
    end helper_calls_stores_by_rbx
    function helper_calls_a_caller_of_stores_by_rbx
    sub $8,%rsp; .cfi_adjust_cfa_offset 8; call helper_calls_stores_by_rbx; add $8,%rsp; .cfi_adjust_cfa_offset -8; ret
    end helper_calls_a_caller_of_stores_by_rbx
    function helper_loads_what_it_saved
    push %rbx; .cfi_adjust_cfa_offset 8; xor %ebx,%ebx; mov (%rsp),%rax; movq $1,(%rax); pop %rbx
    .cfi_adjust_cfa_offset -8; ret
    end helper_loads_what_it_saved
    function helper_pops_what_it_saved
    push %rbx; .cfi_adjust_cfa_offset 8; pop %rax; .cfi_adjust_cfa_offset -8; movq $1,(%rax); ret
    end helper_pops_what_it_saved
    function helper_passes_what_it_saved
    push %rbx; .cfi_adjust_cfa_offset 8; xor %ebx,%ebx; mov (%rsp),%rdi; call helper_stores; pop %rbx
    .cfi_adjust_cfa_offset -8; ret
    end helper_passes_what_it_saved
    function helper_stores_after_restoring
    push %rbx; .cfi_adjust_cfa_offset 8; xor %ebx,%ebx; pop %rbx; .cfi_adjust_cfa_offset -8; movq $1,(%rbx); ret
    end helper_stores_after_restoring
    function helper_jumps_after_restoring
    push %rbx; .cfi_adjust_cfa_offset 8; xor %ebx,%ebx; pop %rbx; .cfi_adjust_cfa_offset -8; jmp helper_stores_by_rbx
    end helper_jumps_after_restoring
    function helper_calls_by_address; lea helper_only_saves(%rip),%rax; call *%rax; ret; end helper_calls_by_address
    function helper_jumps_by_address; lea helper_only_saves(%rip),%rax; jmp *%rax; end helper_jumps_by_address
    function helper_jumps_by_word; jmp *pointers_to_savers(%rip); end helper_jumps_by_word
    function helper_jumps_by_table
    mov $1,%eax; lea pointers_to_savers(%rip),%rdx; jmp *(%rdx,%rax,8)
    end helper_jumps_by_table
    function helper_leads_to_zeroes_fp; jmp helper_zeroes_fp; end helper_leads_to_zeroes_fp
    function helper_calls_zeroes_fp; call helper_zeroes_fp; .cfi_undefined %rbp; ret; end helper_calls_zeroes_fp
    function helper_passes_slot_of_fp
    push %rbp; .cfi_adjust_cfa_offset 8; mov %rsp,%rdi; call helper_stores; pop %rbp; .cfi_adjust_cfa_offset -8; ret
    end helper_passes_slot_of_fp
    function helper_has_slot_of_fp_overwritten
    push %rbp; .cfi_adjust_cfa_offset 8; call helper_stores_above; pop %rbp; .cfi_adjust_cfa_offset -8; ret
    end helper_has_slot_of_fp_overwritten
    .data
    .balign 8
pointers_to_savers: .quad helper_only_saves, helper_only_saves
stack_in_memory: .quad 0
place_in_memory: .quad 0
address_in_memory: .quad 0
pointer_to_keeps: .quad helper_keeps
    .text
""",
    "aarch64": """
    .arch armv8.6-a+sve+memtag
    .macro in_vectors base, granules, offset
    .cfi_escape 0x0f,11,\\base,0,0x92,46,0,0x08,\\granules,0x1e,0x23,\\offset,0x22
    .endm
    function helper_keeps; ret; end helper_keeps
    function helper
    mov x0,#1; mov x1,x0; mov x2,x0; mov x3,x0; mov x4,x0; mov x5,x0; mov x6,x0; mov x7,x0; mov x8,x0
    mov x9,x0; mov x10,x0; mov x11,x0; mov x12,x0; mov x13,x0; mov x14,x0; mov x15,x0; mov x16,x0; mov x17,x0
    fmov d0,x0; fmov d1,x0; fmov d16,x0; ret
    end helper
    function helper_zeroes_fp; mov x29,#0; .cfi_undefined x29; ret; end helper_zeroes_fp
    function helper_pops_16; add sp,sp,#16; .cfi_def_cfa_offset -16; ret; end helper_pops_16
    function helper_traps; brk #1; end helper_traps
    function helper_stores; mov x9,#1; str x9,[x0]; ret; end helper_stores
    function helper_stores_by_part; mov w9,#1; str w9,[x0]; strb w9,[x0,#5]; ret; end helper_stores_by_part
    function helper_stores_above; mov x9,#1; str x9,[sp]; ret; end helper_stores_above
    function helper_stores_higher; mov x9,#1; str x9,[sp,#16]; ret; end helper_stores_higher
    function helper_stores_far; mov x9,#1; str x9,[x0,#64]; ret; end helper_stores_far
    function helper_copies; str x1,[x0]; ret; end helper_copies
    function helper_copies_far; str x1,[x0,#32]; ret; end helper_copies_far
    function helper_copies_above; str x1,[sp,#56]; ret; end helper_copies_above
    function helper_copies_by_memory; ldr x9,[x0]; str x1,[x9]; ret; end helper_copies_by_memory
    function helper_stores_by_x19; mov x9,#1; str x9,[x19]; ret; end helper_stores_by_x19
    function helper_stores_by_vector; fmov x9,d0; str x9,[x9]; ret; end helper_stores_by_vector
    function helper_stores_by_stack; ldr x9,[sp]; str x9,[x9]; ret; end helper_stores_by_stack
    function helper_stores_by_second_on_stack; ldr x9,[sp,#8]; str x9,[x9]; ret; end helper_stores_by_second_on_stack
    function helper_stores_by_memory; ldr x9,[x0]; str x9,[x9]; ret; end helper_stores_by_memory
    function helper_stores_by_d8; fmov x9,d8; str x9,[x9]; ret; end helper_stores_by_d8
    function helper_stores_by_v8_high; mov x9,v8.d[1]; str x9,[x9]; ret; end helper_stores_by_v8_high
    function helper_stores_by_x17; str x17,[x17]; ret; end helper_stores_by_x17
    function helper_stores_by_x18; str x18,[x18]; ret; end helper_stores_by_x18
    function helper_stores_by_x20; mov x9,#1; str x9,[x20]; ret; end helper_stores_by_x20
    function helper_stores_by_x29; mov x9,#1; str x9,[x29]; ret; end helper_stores_by_x29
    function helper_stores_by_x19_and_index; and x1,x1,#8; str x1,[x19,x1]; ret; end helper_stores_by_x19_and_index
    function helper_copies_x19; mov x0,x19; ret; end helper_copies_x19
    function helper_stores_pair_by_x19; stp x0,x1,[x19]; ret; end helper_stores_pair_by_x19
    function helper_stores_by_x19_writeback; str x0,[x19],#8; sub x19,x19,#8; ret; end helper_stores_by_x19_writeback
    function helper_stores_vector_by_x19; st1 {v0.16b},[x19]; ret; end helper_stores_vector_by_x19
    function helper_swaps_by_x19; swp x0,x1,[x19]; ret; end helper_swaps_by_x19
    function helper_stores_by_thread; mrs x9,tpidr_el0; str x9,[x9]; ret; end helper_stores_by_thread
    function helper_stores_by_two_words; ldr x9,[x0]; ldr x9,[x9]; str x9,[x9]; ret; end helper_stores_by_two_words
    function helper_returns; ret; end helper_returns
    function helper_leads_to_stores; b helper_stores; end helper_leads_to_stores
    function helper_jumps_to_stores; adr x9,helper_stores; br x9; end helper_jumps_to_stores
    function helper_restores
    str x19,[sp,#-16]!; .cfi_def_cfa_offset 16; mov x19,x0; ldr x19,[sp],#16; .cfi_def_cfa_offset 0; ret
    end helper_restores
    function helper_only_saves
    str x19,[sp,#-16]!; .cfi_def_cfa_offset 16; mov x19,x0; ldr x9,[sp],#16; .cfi_def_cfa_offset 0; ret
    end helper_only_saves
    function helper_restores_another
    stp x19,x0,[sp,#-16]!; .cfi_def_cfa_offset 16; ldr x19,[sp,#8]; add sp,sp,#16; .cfi_def_cfa_offset 0; ret
    end helper_restores_another
    function helper_stores_above_by_jump; b helper_stores_next; end helper_stores_above_by_jump
    function helper_stores_next; str x0,[sp,#8]; ret; end helper_stores_next
    function helper_stores_above_by_callee
    str x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset x30,-16; bl helper_stores_at_24; ldr x30,[sp],#16
    .cfi_def_cfa_offset 0; .cfi_restore x30; ret
    end helper_stores_above_by_callee
    function helper_stores_at_24; str x0,[sp,#24]; ret; end helper_stores_at_24
    function helper_pops_and_jumps; mov x9,x30; add sp,sp,#16; .cfi_def_cfa_offset -16; br x9; end helper_pops_and_jumps
    function helper_jumps_to_pops_16; b helper_pops_16; end helper_jumps_to_pops_16
    function helper_calls_stores_by_x19
    str x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset x30,-16; bl helper_stores_by_x19; ldr x30,[sp],#16
    .cfi_def_cfa_offset 0; .cfi_restore x30; ret
    end helper_calls_stores_by_x19
    function helper_calls_a_caller_of_stores_by_x19
    str x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset x30,-16; bl helper_calls_stores_by_x19; ldr x30,[sp],#16
    .cfi_def_cfa_offset 0; .cfi_restore x30; ret
    end helper_calls_a_caller_of_stores_by_x19
    function helper_loads_what_it_saved
    str x19,[sp,#-16]!; .cfi_def_cfa_offset 16; mov x19,#0; ldr x9,[sp]; str x9,[x9]; ldr x19,[sp],#16
    .cfi_def_cfa_offset 0; ret
    end helper_loads_what_it_saved
    function helper_pops_what_it_saved
    str x19,[sp,#-16]!; .cfi_def_cfa_offset 16; ldr x9,[sp],#16; .cfi_def_cfa_offset 0; str x9,[x9]; ret
    end helper_pops_what_it_saved
    function helper_passes_what_it_saved
    stp x19,x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset x30,-8; mov x19,#0; ldr x0,[sp]; bl helper_stores
    ldp x19,x30,[sp],#16; .cfi_def_cfa_offset 0; .cfi_restore x30; ret
    end helper_passes_what_it_saved
    function helper_stores_after_restoring
    str x19,[sp,#-16]!; .cfi_def_cfa_offset 16; mov x19,#0; ldr x19,[sp],#16; .cfi_def_cfa_offset 0; str x19,[x19]; ret
    end helper_stores_after_restoring
    function helper_jumps_after_restoring
    str x19,[sp,#-16]!; .cfi_def_cfa_offset 16; mov x19,#0; ldr x19,[sp],#16; .cfi_def_cfa_offset 0
    b helper_stores_by_x19
    end helper_jumps_after_restoring
    function helper_jumps_by_address; adr x9,helper_only_saves; br x9; end helper_jumps_by_address
    function helper_jumps_by_word
    adrp x9,pointers_to_savers; ldr x9,[x9,#:lo12:pointers_to_savers]; br x9
    end helper_jumps_by_word
    function helper_jumps_by_table
    mov x10,#1; adrp x9,pointers_to_savers; add x9,x9,#:lo12:pointers_to_savers; ldr x9,[x9,x10,lsl #3]; br x9
    end helper_jumps_by_table
    function helper_leads_to_zeroes_fp; b helper_zeroes_fp; end helper_leads_to_zeroes_fp
    function helper_calls_zeroes_fp
    str x30,[sp,#-16]!; .cfi_def_cfa_offset 16; .cfi_offset x30,-16; bl helper_zeroes_fp; .cfi_undefined x29
    ldr x30,[sp],#16; .cfi_def_cfa_offset 0; .cfi_restore x30; ret
    end helper_calls_zeroes_fp
    .data
    .balign 8
pointers_to_savers: .quad helper_only_saves, helper_only_saves
    .text
zero_name: .asciz "/dev/zero"
    .balign 8
""",
    "s390x": """
    function helper_keeps; br %r14; end helper_keeps
    function helper
    lghi %r1,1; lgr %r0,%r1; lgr %r2,%r1; lgr %r3,%r1; lgr %r4,%r1; lgr %r5,%r1
    ldgr %f0,%r1; ldgr %f2,%r1; ldgr %f4,%r1; br %r14
    end helper
    function helper_copies; stg %r3,0(%r2); br %r14; end helper_copies
    function helper_copies_far; stg %r3,32(%r2); br %r14; end helper_copies_far
    function helper_copies_above; stg %r3,200(%r15); br %r14; end helper_copies_above
    function helper_copies_by_memory; lg %r1,0(%r2); stg %r3,0(%r1); br %r14; end helper_copies_by_memory
    function helper_zeroes_fp; lghi %r11,0; .cfi_undefined %r11; br %r14; end helper_zeroes_fp
    function helper_pops_16; la %r15,16(%r15); .cfi_def_cfa_offset 144; br %r14; end helper_pops_16
    function helper_saves
    stmg %r6,%r15,48(%r15); .cfi_offset %r11,-72; .cfi_offset %r14,-48; lghi %r11,1
    lmg %r6,%r15,48(%r15); .cfi_restore %r11; .cfi_restore %r14; br %r14
    end helper_saves
    function helper_stores; mvghi 0(%r2),1; br %r14; end helper_stores
    function helper_stores_by_part; mvhi 0(%r2),1; mvi 5(%r2),1; br %r14; end helper_stores_by_part
    function helper_stores_above; mvghi 160(%r15),1; br %r14; end helper_stores_above
    function helper_stores_higher; mvghi 168(%r15),1; br %r14; end helper_stores_higher
    function helper_stores_far; mvghi 64(%r2),1; br %r14; end helper_stores_far
    function helper_stores_by_r12; mvghi 0(%r12),1; br %r14; end helper_stores_by_r12
    function helper_stores_by_vector; lgdr %r1,%f0; mvghi 0(%r1),1; br %r14; end helper_stores_by_vector
    function helper_stores_by_stack; lg %r1,160(%r15); mvghi 0(%r1),1; br %r14; end helper_stores_by_stack
    function helper_stores_by_memory; lg %r1,0(%r2); mvghi 0(%r1),1; br %r14; end helper_stores_by_memory
    function helper_stores_by_r0; lgr %r1,%r0; stg %r1,0(%r1); br %r14; end helper_stores_by_r0
    function helper_stores_by_r1; stg %r1,0(%r1); br %r14; end helper_stores_by_r1
    function helper_stores_by_r6; mvghi 0(%r6),1; br %r14; end helper_stores_by_r6
    function helper_stores_by_r6_and_index; nilf %r3,8; stg %r3,0(%r3,%r6); br %r14; end helper_stores_by_r6_and_index
    function helper_copies_r6; lgr %r2,%r6; br %r14; end helper_copies_r6
    function helper_moves_by_r6; mvc 0(8,%r6),0(%r2); br %r14; end helper_moves_by_r6
    function helper_clears_by_r6; xc 0(8,%r6),0(%r6); br %r14; end helper_clears_by_r6
    function helper_stores_multiple_by_r6; stmg %r2,%r3,0(%r6); br %r14; end helper_stores_multiple_by_r6
    function helper_stores_by_r11; mvghi 0(%r11),1; br %r14; end helper_stores_by_r11
    function helper_stores_by_f8; lgdr %r1,%f8; mvghi 0(%r1),1; br %r14; end helper_stores_by_f8
    function helper_stores_by_v20; vlgvg %r1,%v20,0; mvghi 0(%r1),1; br %r14; end helper_stores_by_v20
    function helper_stores_by_v8_low; vlgvg %r1,%v8,1; mvghi 0(%r1),1; br %r14; end helper_stores_by_v8_low
    function helper_stores_returns_by_r1; mvghi 0(%r2),1; br %r1; end helper_stores_returns_by_r1
    function helper_leads_to_stores; jg helper_stores; end helper_leads_to_stores
    function helper_jumps_to_stores; larl %r1,helper_stores; br %r1; end helper_jumps_to_stores
    function helper_restores; stg %r12,96(%r15); lgr %r12,%r2; lg %r12,96(%r15); br %r14; end helper_restores
    function helper_only_saves; stg %r12,96(%r15); lgr %r12,%r2; lg %r1,96(%r15); br %r14; end helper_only_saves
    function helper_restores_another
    stg %r12,96(%r15); stg %r2,104(%r15); lg %r12,104(%r15); br %r14
    end helper_restores_another
    function helper_stores_above_by_jump; jg helper_stores_higher; end helper_stores_above_by_jump
    function helper_stores_above_by_callee
    stmg %r14,%r15,112(%r15); .cfi_offset %r14,-48; .cfi_offset %r15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320
    brasl %r14,helper_stores_at_328; lmg %r14,%r15,272(%r15); .cfi_restore %r14; .cfi_restore %r15
    .cfi_def_cfa_offset 160; br %r14
    end helper_stores_above_by_callee
    function helper_stores_at_328; mvghi 328(%r15),1; br %r14; end helper_stores_at_328
    function helper_pops_and_jumps; lgr %r1,%r14; la %r15,16(%r15); .cfi_def_cfa_offset 144; br %r1
    end helper_pops_and_jumps
    function helper_jumps_to_pops_16; jg helper_pops_16; end helper_jumps_to_pops_16
    function helper_calls_stores_by_r6
    stmg %r14,%r15,112(%r15); .cfi_offset %r14,-48; .cfi_offset %r15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320
    brasl %r14,helper_stores_by_r6; lmg %r14,%r15,272(%r15); .cfi_restore %r14; .cfi_restore %r15
    .cfi_def_cfa_offset 160; br %r14
    end helper_calls_stores_by_r6
    function helper_calls_a_caller_of_stores_by_r6
    stmg %r14,%r15,112(%r15); .cfi_offset %r14,-48; .cfi_offset %r15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320
    brasl %r14,helper_calls_stores_by_r6; lmg %r14,%r15,272(%r15); .cfi_restore %r14; .cfi_restore %r15
    .cfi_def_cfa_offset 160; br %r14
    end helper_calls_a_caller_of_stores_by_r6
    function helper_loads_what_it_saved
    stg %r6,48(%r15); lghi %r6,0; lg %r1,48(%r15); stg %r1,0(%r1); lg %r6,48(%r15); br %r14
    end helper_loads_what_it_saved
    function helper_passes_what_it_saved
    stmg %r6,%r15,48(%r15); .cfi_offset %r14,-48; .cfi_offset %r15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320
    lghi %r6,0; lg %r2,208(%r15); brasl %r14,helper_stores; lmg %r6,%r15,208(%r15); .cfi_restore %r14
    .cfi_restore %r15; .cfi_def_cfa_offset 160; br %r14
    end helper_passes_what_it_saved
    function helper_stores_after_restoring
    stg %r6,48(%r15); lghi %r6,0; lg %r6,48(%r15); stg %r6,0(%r6); br %r14
    end helper_stores_after_restoring
    function helper_jumps_after_restoring
    stg %r6,48(%r15); lghi %r6,0; lg %r6,48(%r15); jg helper_stores_by_r6
    end helper_jumps_after_restoring
    function helper_jumps_by_address; larl %r1,helper_only_saves; br %r1; end helper_jumps_by_address
    function helper_jumps_by_word; lgrl %r1,pointers_to_savers; br %r1; end helper_jumps_by_word
    function helper_jumps_by_table
    lghi %r3,8; larl %r1,pointers_to_savers; lg %r1,0(%r3,%r1); br %r1
    end helper_jumps_by_table
    function helper_leads_to_zeroes_fp; jg helper_zeroes_fp; end helper_leads_to_zeroes_fp
    .data
    .balign 8
pointers_to_savers: .quad helper_only_saves, helper_only_saves
    .text
    function helper_traps
    .insn e,0x0001
    end helper_traps
""",
}
"""The functions that the tested functions call."""
_ARGUMENTS = {"amd64": (5, 4), "aarch64": (0, 1), "s390x": (2, 3)}
"""The DWARF numbers of the registers of the first two arguments."""


class Program(NamedTuple):
    """A linked program with functions to execute."""

    path: Path
    symbols: Mapping[str, int]
    addresses: tuple[int, ...]
    """Addresses at which another row begins."""
    rows: tuple[Mapping[Any, Any] | None, ...]
    """For each of these addresses, the row of the CFI from there on, by pyelftools."""
    starts: tuple[int, ...]
    """Start addresses of functions."""

    def row(self, pc: int) -> Mapping[Any, Any] | None:
        """Return the row for an address; ``None``: there is none."""
        at = bisect_right(self.addresses, pc)
        return self.rows[at - 1] if at else None

    def start(self, pc: int) -> int:
        """Return the start of the function that contains an address."""
        at = bisect_right(self.starts, pc)
        return self.starts[at - 1] if at else 0


def link(machine: str, functions: str, names: list[str], path: Path) -> Program:
    """Assemble and link functions to a program that QEMU can execute.

    :param functions: assembly.
    :param names: names of the functions, each of which may be called.
    """
    pointers = "".join(f"\t.quad {name}\n" for name in names)
    # The lowest byte of the return addresses is 8: otherwise, storing a 0 or a 1 there, or setting one of its lowest
    # bits, would not be noticed.
    source = f"""\t.text
\t.globl _start
_start:\t.fill 2,4,0
the_end:\tnop
\tnop
{_MACROS}{_HELPERS[machine]}
{functions}
\t.section .init_array,"aw"
\t.balign 8
{pointers}
\t.bss
\t.balign 4096
data:\t.space {_DATA}
stack:\t.space {2 * _STACK}
"""
    object_path = assemble(machine, source, path.with_suffix(".o"))
    target, options = TARGETS[machine]
    tools = provide(BINUTILS, target)
    subprocess.run([str(tools / "ld"), *options, _TEXT, str(object_path), "-o", str(path)], check=True, timeout=HANG)
    with path.open("rb") as file:
        elf = ELFFile(file)
        table: Any = elf.get_section_by_name(".symtab")
        symbols = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols() if symbol.name}
        rows: list[tuple[int, Mapping[Any, Any] | None]] = []
        starts: list[int] = []
        for entry in elf.get_dwarf_info().EH_CFI_entries():
            if "initial_location" in entry.header:
                signing = _signing(entry)
                for row in entry.get_decoded().table:
                    is_signed = sum(address <= row["pc"] for address in signing) % 2
                    rows.append((row["pc"], {**row, _SIGNED: bool(is_signed)}))
                rows.append((entry["initial_location"] + entry["address_range"], None))
                starts.append(entry["initial_location"])
    ordered = sorted(rows, key=lambda entry: (entry[0], entry[1] is not None))
    addresses = tuple(address for address, _ in ordered)
    return Program(path, symbols, addresses, tuple(row for _, row in ordered), tuple(sorted(starts)))


def _signing(entry: Any) -> list[int]:
    """Return the addresses where a return address starts or stops being signed; pyelftools has no row for this."""
    address, found = entry["initial_location"], []
    for instruction in entry.instructions:
        name = str(instruction.opcode.FQN)
        if name.startswith("DW_CFA_advance_loc"):
            address += instruction.args[0] * entry.cie["code_alignment_factor"]
        elif name == "DW_CFA_AARCH64_negate_ra_state":
            found.append(address)
    return found


class Entered(NamedTuple):
    """The values that a rule has to find."""

    cfa: int
    ra: int
    fp: int


class Judge:
    """Executes the functions of one program."""

    def __init__(self, machine: str, program: Program, stub: Stub) -> None:
        self._machine: Machine = MACHINES[machine]
        self._arch = self._machine.arch
        self._program = program
        self._stub = stub
        self._arguments = _ARGUMENTS[machine]
        self._stack = program.symbols["stack"] + _STACK
        self._data = program.symbols["data"]
        self._end = program.symbols["the_end"]

    def wrong(self, name: str, random_: random.Random, runs: int) -> dict[int, bool]:
        """Execute a function several times; return whether its rows are wrong, by the addresses that were reached."""
        found: Counter[int] = Counter()
        for number in range(runs):
            for at, wanted in self.reached(name, random_, number):
                row = self._program.row(at.pc)
                if row is not None:
                    found[at.pc] += self._doubt(row, at, wanted)
        return {pc: doubt >= _CERTAIN for pc, doubt in found.items()}

    def _entered(self, start: int, random_: random.Random, number: int) -> tuple[Stopped, Entered]:
        """Set the program to a function's entry, with a random state."""
        machine, arch = self._machine, self._arch
        registers = [random_.getrandbits(64) for _ in machine.general]
        registers[self._arguments[0]] = self._data + 256
        registers[self._arguments[1]] = number % 8
        sp = self._stack + random_.randrange(_ALIGNMENTS) * 16 + machine.sp_at_entry % 16
        registers[arch.sp] = sp
        self._stub.write(self._data, random_.randbytes(_DATA // 4))
        self._stub.write(self._stack - _WINDOW, random_.randbytes(16 * _ALIGNMENTS + 2 * _WINDOW))
        if arch.ra is None:
            self._stub.write(sp, self._end.to_bytes(8, arch.byteorder))
        else:
            registers[arch.ra] = self._end
        self._stub.fill_floating(random.Random(number))
        entered = Stopped(start, tuple(registers))
        self._stub.place(entered)
        return entered, Entered(sp - machine.sp_at_entry & _MASK, self._end, registers[arch.fp])

    def reached(self, name: str, random_: random.Random, number: int) -> Iterator[tuple[Stopped, Entered]]:
        """Execute a function once.  Yield the state before each of its own instructions, with the frame to be found.

        :param number: the second argument of the function is this number modulo 8.
        """
        names = self._program.symbols
        own = {names[name], names.get(f"{name}.cold", 0)}
        at, wanted = self._entered(names[name], random_, number)
        previous, is_call = None, False
        for _ in range(_MOST_STEPS):
            if at.pc == self._end:
                return
            if self._program.start(at.pc) in own and at.pc != previous:
                yield at, wanted
            previous = at.pc  # QEMU stops within instructions that repeat themselves
            if not self._stub.step():
                return
            before, at = at, self._stub.stopped()
            if self._program.start(before.pc) in own:
                is_call = self._is_call(before, at)
            if not is_call and self._program.start(at.pc) in own and self._is_return(before, at):
                return

    def _is_call(self, before: Stopped, at: Stopped) -> bool:
        """Return whether an instruction was a call, by the link register after it."""
        link = self._arch.ra
        return link is None or 0 < at.registers[link] - before.pc <= self._machine.max_size

    def _is_return(self, before: Stopped, at: Stopped) -> bool:
        """Return whether an instruction has jumped to the address in the link register.

        A function that leaves its return address there for its own call returns this way, without a frame.
        """
        link = self._arch.ra
        is_next = 0 < at.pc - before.pc <= self._machine.max_size
        return link is not None and at.pc == at.registers[link] and not is_next

    def _doubt(self, row: Mapping[Any, Any], at: Stopped, wanted: Entered) -> int:
        """Return 0 for a row that is right, :data:`_CERTAIN` for one that is wrong, and 1 for one that may be wrong.

        One in 128 authentication codes is equal to none.
        """
        rule = row["cfa"]
        cfa = self._expression(rule.expr, at) if rule.reg is None else at.registers[rule.reg] + rule.offset & _MASK
        arch = self._arch
        ra = self._register(row.get(arch.return_column), arch.return_column, at, wanted.cfa)
        fp = self._register(row.get(arch.fp), arch.fp, at, wanted.cfa)
        plain = ra & _UNSIGNED if ra is not None and row[_SIGNED] else ra
        if cfa != wanted.cfa or plain != wanted.ra or fp != wanted.fp:
            return _CERTAIN
        return int(row[_SIGNED] and ra == wanted.ra)

    def _register(self, rule: Any, number: int, at: Stopped, cfa: int) -> int | None:
        """Return the caller's value of a register by a rule, given the right CFA: a wrong CFA is already an error."""
        if rule is None or rule.type == "SAME_VALUE":
            return at.registers[number] if number < len(at.registers) else None
        if rule.type == "OFFSET":
            return self._word(cfa + rule.arg)
        if rule.type == "REGISTER":
            return self._other(rule.arg, at)
        assert rule.type == "EXPRESSION", rule.type
        address = self._expression(rule.arg, at)
        return None if address is None else self._word(address)

    def _other(self, number: int, at: Stopped) -> int | None:
        if number < len(at.registers):
            return at.registers[number]
        return self._stub.floating(number)

    def _expression(self, expression: list[int], at: Stopped) -> int | None:
        """Evaluate a register plus an offset, the word at that address, or a number of vector lengths more."""
        operation, offset, *rest = expression
        assert 0x70 <= operation <= 0x8F, expression  # DW_OP_bregN
        address = at.registers[operation - 0x70] + (offset - 128 if offset > 63 else offset) & _MASK
        if rest[:4] == [0x92, 46, 0, 0x08]:  # DW_OP_bregx VG, DW_OP_const1u
            lengths, times, add_constant, added, add = rest[4:]
            assert (times, add_constant, add) == (0x1E, 0x23, 0x22), expression
            return address + GRANULES * lengths + added & _MASK
        assert rest in ([], [6]), expression  # DW_OP_deref
        return self._word(address) if rest else address

    def _word(self, address: int) -> int | None:
        raw = self._stub.read(address & _MASK, 8)
        return int.from_bytes(raw, self._arch.byteorder) if len(raw) == 8 else None
