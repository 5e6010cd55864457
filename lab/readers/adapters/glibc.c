/* Runs the SFrame reader of glibc on a section.

   usage: glibc ADDRESS-OF-SECTION PC... < SECTION

   Prints a line for each pc: "-", or the base of the CFA (0 FP, 1 SP) and the offsets of CFA, RA and FP; "x" for an
   offset that the row does not have.  Exit status 3: the reader refuses the section.  The section is in front of a page
   that cannot be read.  */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sframe-read.h>

typedef int32_t offset_of (sframe_decoder_ctx *, sframe_frame_row_entry *, _Unwind_Reason_Code *);

static void
show (offset_of *get, sframe_decoder_ctx *context, sframe_frame_row_entry *row)
{
  _Unwind_Reason_Code error = _URC_NO_REASON;
  int32_t offset = get (context, row, &error);
  if (error == _URC_NO_REASON)
    printf (" %d", offset);
  else
    printf (" x");
}

int
main (int count, char **arguments)
{
  static char input[1 << 24];
  size_t size = fread (input, 1, sizeof input, stdin);
  size_t page = sysconf (_SC_PAGESIZE), room = (size + 7) & ~(size_t) 7, pages = (room + page - 1) / page;
  char *area = mmap (NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED || mprotect (area + pages * page, page, PROT_NONE))
    return 2;
  char *section = memcpy (area + pages * page - room, input, size);
  uint64_t address = strtoull (arguments[1], NULL, 0);
  sframe_decoder_ctx context;
  memset (&context, 0, sizeof context);
  if (__sframe_decode (&context, section) != _URC_NO_REASON)
    return 3;
  for (int i = 2; i < count; i++)
    {
      sframe_frame_row_entry row;
      /* The caller in glibc passes the difference in the same type.  */
      int32_t pc = strtoull (arguments[i], NULL, 0) - address;
      if (__sframe_find_fre (&context, pc, &row) != _URC_NO_REASON)
        {
          puts ("-");
          continue;
        }
      printf ("%d", __sframe_fre_get_base_reg_id (&row));
      show (__sframe_fre_get_cfa_offset, &context, &row);
      show (__sframe_fre_get_ra_offset, &context, &row);
      show (__sframe_fre_get_fp_offset, &context, &row);
      putchar ('\n');
    }
  return 0;
}
