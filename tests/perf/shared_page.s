# A call, below the entry point.
	.section .rodata
	.fill 100
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	.cfi_undefined rip
	call called
	ud2
	.cfi_endproc
	.size _start, . - _start

	.type called, @function
called:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	nop
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size called, . - called
