# A function without a symbol whose unwind data is in the sections that SECTIONS names.
 .cfi_sections SECTIONS
 .text
.Lrelay:
 .cfi_startproc
 sub $40, %rsp
 .cfi_adjust_cfa_offset 40
 mov %rdi, 8(%rsp)
 mov %rsi, %rdi
 mov %edx, %esi
 call *8(%rsp)
 add $40, %rsp
 .cfi_adjust_cfa_offset -40
 ret
 .cfi_endproc
 .data
 .globl relay
relay: .quad .Lrelay
 .section .note.GNU-stack, "", @progbits
