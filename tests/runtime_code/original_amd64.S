# Code with unwind data of its own; copies of it are described by ALIAS, or by copies of its CFI.

        .cfi_sections .eh_frame, .sframe
        .text
        .globl  original, original_body, original_end
        .type   original, @function
original:
        .cfi_startproc
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        sub     $16, %rsp
        .cfi_def_cfa_offset 32
        mov     %rdi, %rbx
original_body:
        movabs  $sample_stop, %rax
        call    *%rax
        lea     1(%rbx), %rax
        add     $16, %rsp
        .cfi_def_cfa_offset 16
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
original_end:
        .size   original, . - original
        .section .note.GNU-stack, "", @progbits
