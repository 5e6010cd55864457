/* The first program of the guest with Debian's kernel, in which a module tells QEMU where VMCOREINFO is. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    int file = open("/qemu_fw_cfg.ko", O_RDONLY);
    if (syscall(SYS_finit_module, file, "", 0) != 0)
        perror("qemu_fw_cfg");
    close(file);
    execl("/guest", "init", (char *)0);
}
