/* Preloaded into a reader: begins a line of the file CRASH_PLACES for each crash, with the signal, and the addresses in
   the file of the frames of the object whose name begins with CRASH_OBJECT, from the innermost outward.  */

#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *object, *places;
static uintptr_t low, high, base;

static int
look (struct dl_phdr_info *info, __attribute__ ((unused)) size_t size, __attribute__ ((unused)) void *data)
{
  static char executable[4096];
  const char *path = info->dlpi_name;
  if (!*path && !*executable && readlink ("/proc/self/exe", executable, sizeof executable - 1) > 0)
    path = executable;
  const char *name = strrchr (path, '/') ? strrchr (path, '/') + 1 : path;
  for (int i = 0; !strncmp (name, object, strlen (object)) && i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
      {
        base = info->dlpi_addr;
        low = base + info->dlpi_phdr[i].p_vaddr;
        high = low + info->dlpi_phdr[i].p_memsz;
      }
  return 0;
}

static void
add (int file, const char *text, size_t size)
{
  if (write (file, text, size) != (ssize_t)size)
    _exit (1);
}

static void
crashed (int number, siginfo_t *info, __attribute__ ((unused)) void *context)
{
  void *frames[64];
  char line[64 * 20];
  static int inside;
  if (info->si_code != SI_USER && !inside++)
    {
      int file = open (places, O_WRONLY | O_APPEND);
      /* What was damaged may end the process at any later step.  */
      add (file, line, snprintf (line, sizeof line, "\n%d", number));
      size_t size = 0;
      dl_iterate_phdr (look, NULL);
      for (int count = backtrace (frames, 64), i = 0; i < count; i++)
        if (low <= (uintptr_t)frames[i] && (uintptr_t)frames[i] < high)
          size += snprintf (line + size, sizeof line - size, " %lx", (uintptr_t)frames[i] - base);
      add (file, line, size);
    }
  signal (number, SIG_DFL);
  raise (number);
}

__attribute__ ((constructor)) static void
prepare (void)
{
  static char stack[1 << 16];
  stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
  struct sigaction action = { .sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK };
  void *frame;
  object = getenv ("CRASH_OBJECT");
  places = getenv ("CRASH_PLACES");
  if (!object || !places)
    return;
  backtrace (&frame, 1); /* loads what it needs now */
  sigaltstack (&other, NULL);
  for (const int *number = (const int[]){ SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGXCPU, 0 }; *number; number++)
    sigaction (*number, &action, NULL);
}
