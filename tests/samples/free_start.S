/* The start of a program without a C library, and its two system calls. The return address of _start is declared
 * undefined, which makes it the outermost frame. */
#ifdef SFRAME_ONLY
    .cfi_sections .sframe
#endif
    .text
    .globl _start
    .type _start,%function
_start:
    .cfi_startproc
#if defined __x86_64__
    .cfi_undefined rip
    mov %rsp,%rdi
    xor %ebp,%ebp
    and $-16,%rsp
    call free_main
    mov %eax,%edi
    mov $60,%eax
    syscall
    hlt
#elif defined __aarch64__
    .cfi_undefined x30
    mov x0,sp
    mov x29,#0
    mov x30,#0
    bl free_main
    mov x8,#93
    svc #0
    udf #0
#elif defined __s390x__
    .cfi_undefined r14
    lgr %r2,%r15
    lghi %r11,0
    lghi %r14,0
    aghi %r15,-160
    brasl %r14,free_main
    svc 1
    .short 0
#endif
    .cfi_endproc
    .size _start,.-_start

/* long free_write(long descriptor, const void *text, long length) */
    .globl free_write
    .type free_write,%function
free_write:
    .cfi_startproc
#if defined __x86_64__
    mov $1,%eax
    syscall
    ret
#elif defined __aarch64__
    mov x8,#64
    svc #0
    ret
#elif defined __s390x__
    svc 4
    br %r14
#endif
    .cfi_endproc
    .size free_write,.-free_write

    .section .note.GNU-stack,"",%progbits
