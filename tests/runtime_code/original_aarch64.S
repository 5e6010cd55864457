// Code with unwind data of its own; copies of it are described by ALIAS, or by copies of its CFI.

        .cfi_sections .eh_frame, .sframe
        .text
        .globl  original, original_body, original_end
        .type   original, %function
original:
        .cfi_startproc
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        str     x19, [sp, #16]
        .cfi_offset x19, -16
        mov     x19, x0
original_body:
        movz    x16, #:abs_g3:sample_stop
        movk    x16, #:abs_g2_nc:sample_stop
        movk    x16, #:abs_g1_nc:sample_stop
        movk    x16, #:abs_g0_nc:sample_stop
        blr     x16
        add     x0, x19, #1
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
original_end:
        .size   original, . - original
        .section .note.GNU-stack, "", %progbits
