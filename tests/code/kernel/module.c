/* A kernel module as kbuild makes one: code in three sections, calls of what only the kernel has, returns and indirect
   calls through the kernel's thunks, a function of a bad directive in `.exit.text`. */

#define SECTION(name) __attribute__((section(name)))

int _printk(const char *format, ...);
void panic(const char *format, ...) __attribute__((noreturn));
void *__kmalloc(unsigned long size, unsigned flags);
void kfree(const void *block);

struct operations {
    int (*open)(void *);
    void (*release)(void *, int);
};

static char information[] SECTION(".modinfo") __attribute__((used)) = "license=GPL";
static struct { char name[56]; int (*init)(void); void (*exit)(void); } this_module
    SECTION(".gnu.linkonce.this_module") __attribute__((used, aligned(64)));

int dispatch(const struct operations *operations, void *what, int kind)
{
    void *copy = __kmalloc(kind * 16 + 64, 0xcc0);
    if (!copy)
        panic("no memory for %d", kind);
    int opened = operations->open(what);
    if (opened < 0) {
        kfree(copy);
        return opened;
    }
    operations->release(copy, opened);
    return _printk("%p %d", what, opened);
}

void pass_on(const struct operations *operations, void *what, int kind)
{
    operations->release(what, kind + 1);
}

SECTION(".init.text") int init_module(void)
{
    char room[200];
    for (int at = 0; at < 200; at++)
        room[at] = (char)(at * 7);
    return _printk("%.200s", room);
}

__asm__(
    "  .section .exit.text,\"ax\",@progbits\n"
    "  .globl cleanup_module\n"
    "  .type cleanup_module, @function\n"
    "cleanup_module:\n"
    "  .cfi_startproc\n"
    "  call __fentry__\n"
    "  push %rbx\n"
    "  mov %rdi, %rbx\n"
    "  call kfree\n"
    "  pop %rbx\n"
    "  jmp __x86_return_thunk\n"
    "  .cfi_endproc\n"
    "  .size cleanup_module, .-cleanup_module\n");
