# Code with unwind data of its own; copies of it are described by ALIAS, or by copies of its CFI.

        .cfi_sections .eh_frame, .sframe
        .text
        .globl  original, original_body, original_end
        .type   original, @function
original:
        .cfi_startproc
        stmg    %r6, %r15, 48(%r15)
        .cfi_offset %r6, -112
        .cfi_offset %r7, -104
        .cfi_offset %r8, -96
        .cfi_offset %r9, -88
        .cfi_offset %r10, -80
        .cfi_offset %r11, -72
        .cfi_offset %r12, -64
        .cfi_offset %r13, -56
        .cfi_offset %r14, -48
        .cfi_offset %r15, -40
        aghi    %r15, -160
        .cfi_def_cfa_offset 320
        lgr     %r6, %r2
original_body:
        bras    %r1, 1f
        .quad   sample_stop
1:      lg      %r1, 0(%r1)
        basr    %r14, %r1
        la      %r2, 1(%r6)
        lmg     %r6, %r15, 208(%r15)
        .cfi_def_cfa_offset 160
        .cfi_restore %r15
        .cfi_restore %r14
        .cfi_restore %r13
        .cfi_restore %r12
        .cfi_restore %r11
        .cfi_restore %r10
        .cfi_restore %r9
        .cfi_restore %r8
        .cfi_restore %r7
        .cfi_restore %r6
        br      %r14
        .cfi_endproc
original_end:
        .size   original, . - original
        .section .note.GNU-stack, "", @progbits
