"""Functions with DWARF CFI and ORC, in assembly."""

ORC = """
.macro orc at, sp, bp=0, base=5, flags=0
    .pushsection .orc_unwind_ip,"a",@progbits
    .long \\at - .
    .popsection
    .pushsection .orc_unwind,"a",@progbits
    .short \\sp, \\bp
    .byte \\base, \\flags
    .popsection
.endm
"""
"""``\\base`` has the number of SP's register in the low four bits, and that of BP in the others."""

FUNCTION = """
.text
.type function, @function
function:
    .cfi_startproc
    push %rbp
1:  .cfi_def_cfa_offset 16
    .cfi_offset 6, -16
    call other
    pop %rbp
2:  .cfi_def_cfa_offset 8
    .cfi_restore 6
    ret
3:  .cfi_endproc
.size function, .-function
.type assembly, @function
assembly:
    ret
4:  .size assembly, .-assembly
orc function, 8
orc 1b, {pushed}, {bp}, 0x15
orc 2b, 8
orc assembly, 8
orc 4b, 0, 0, 0, 0
"""
