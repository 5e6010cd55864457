/* Loads object files as a JIT compiler does, and registers them through GDB's interface for such.

   jit FIRST SECOND     calls `jitted` of the first file, of the second one in the very same place, and again when it is
                        no longer registered */

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct jit_code_entry {
    struct jit_code_entry *next_entry, *prev_entry;
    const char *symfile_addr;
    uint64_t symfile_size;
} jit_code_entry;

enum { JIT_NOACTION, JIT_REGISTER_FN, JIT_UNREGISTER_FN };

struct {
    uint32_t version, action_flag;
    jit_code_entry *relevant_entry, *first_entry;
} __jit_debug_descriptor = {1, 0, 0, 0};

/* Debuggers put a breakpoint here. */
__attribute__((noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

static volatile long stops;

__attribute__((noinline, noclone)) void sample_stop(long value)
{
    stops += value;
}

typedef long jitted(long, void (*)(long));

__attribute__((noinline, noclone)) long sample_call(jitted *function, long argument)
{
    return function(argument, sample_stop) + 1;
}

static _Alignas(16) char image[1 << 16];
static char *memory;
static jit_code_entry entry;

/* Read the file, copy its code to where it is to run, and write down in its section headers where that is. */
static jitted *load(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    entry.symfile_size = fread(image, 1, sizeof image, file);
    entry.symfile_addr = image;
    fclose(file);
    Elf64_Ehdr *header = (Elf64_Ehdr *)image;
    Elf64_Shdr *sections = (Elf64_Shdr *)(image + header->e_shoff);
    char *next = memory;
    for (int at = 0; at < header->e_shnum; at++) {
        if (!(sections[at].sh_flags & SHF_ALLOC) || !sections[at].sh_size)
            continue;
        next += -(uintptr_t)next & 15;
        sections[at].sh_addr = (uintptr_t)next;
        memcpy(next, image + sections[at].sh_offset, sections[at].sh_size);
        next += sections[at].sh_size;
    }
    for (int at = 0; at < header->e_shnum; at++) {
        if (sections[at].sh_type != SHT_SYMTAB)
            continue;
        Elf64_Sym *symbols = (Elf64_Sym *)(image + sections[at].sh_offset);
        const char *names = image + sections[sections[at].sh_link].sh_offset;
        for (size_t which = 0; which < sections[at].sh_size / sizeof *symbols; which++)
            if (!strcmp(names + symbols[which].st_name, "jitted")) {
                __builtin___clear_cache(memory, next);
                return (jitted *)(sections[symbols[which].st_shndx].sh_addr + symbols[which].st_value);
            }
    }
    printf("%s: no function\n", path);
    exit(1);
}

static void tell(int action, jit_code_entry *first)
{
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.first_entry = first;
    __jit_debug_register_code();
}

int main(int argc, char **argv)
{
    jitted *function = 0;
    memory = mmap(0, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc != 3 || memory == MAP_FAILED)
        return 2;
    for (int at = 1; at < argc; at++) {
        if (at > 1)
            tell(JIT_UNREGISTER_FN, 0);
        function = load(argv[at]);
        tell(JIT_REGISTER_FN, &entry);
        if (sample_call(function, 4) != 6)
            return 1;
    }
    tell(JIT_UNREGISTER_FN, 0);
    return sample_call(function, 4) != 6;
}
