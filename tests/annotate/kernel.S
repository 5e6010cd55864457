/* Assembly as Linux has it. */
#define SYM_ENTRY(name) .globl name; .p2align 4; name:
#define SYM_FUNC_START(name) SYM_ENTRY(name)
#define SYM_FUNC_END(name) .type name, @function; .size name, .-name
#define SYM_CODE_START(name) SYM_ENTRY(name)
#define SYM_CODE_END(name) .type name, @notype; .size name, .-name
#define SAVE_TWO push %rbx; push %r12

	.macro	SAVE register
	push	\register
	.endm

	.text
SYM_FUNC_START(plain)
	push	%rbx
	/* A comment
	   of two lines. */
	call	other
	pop	%rbx
	ret
SYM_FUNC_END(plain)

SYM_FUNC_START(by_macro)
	SAVE	%rbx
	SAVE	%r12
	call	other
	pop	%r12
	pop	%rbx
	ret
SYM_FUNC_END(by_macro)

SYM_FUNC_START(within_macro)
	SAVE_TWO
	call	other
	pop	%r12
	pop	%rbx
	ret
SYM_FUNC_END(within_macro)

SYM_FUNC_START(repeated)
	.rept	3
	push	%rax
	.endr
	call	other
	add	$24, %rsp
	ret
SYM_FUNC_END(repeated)

SYM_CODE_START(entered_by_hardware)
	push	%rax
	call	other
	pop	%rax
	ret
SYM_CODE_END(entered_by_hardware)

SYM_FUNC_START(described)
	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	call	other
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
SYM_FUNC_END(described)
