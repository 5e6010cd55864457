# A leaf function without unwind data, called by functions that have some.
	.text
	.globl leaf
	.type leaf, @function
leaf:	lea 1(%rdi), %eax
	ret
	.size leaf, . - leaf

# Without unwind data too, but no leaf: the word at SP does not follow a call.
	.globl middle
	.type middle, @function
middle:	push %rbp
	mov %rsp, %rbp
	push $0
	push %rdi
	call leaf
	nop
	leave
	ret
	.size middle, . - middle
	.section .note.GNU-stack, "", @progbits
