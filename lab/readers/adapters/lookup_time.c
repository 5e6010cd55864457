/* Measures sframe_find_fre of libsframe.so.3 in two sections for the same code, in turns.

   usage: lookup_time LIBRARY ADDRESS-OF-SECTIONS ONE OTHER ROUNDS < PCS

   PCS has a number on each line.  Prints the nanoseconds of a lookup in each, the best of ROUNDS.  */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "processor_time.h"

typedef void *decode_call (const char *, size_t, int *);
typedef int find_call (const void *, int64_t, void *);

int
main (int count, char **arguments)
{
  static char sections[2][1 << 24];
  static int64_t pcs[1 << 20];
  void *library = count == 6 ? dlopen (arguments[1], RTLD_NOW) : NULL;
  if (!library)
    return 2;
  decode_call *decode = (decode_call *) dlsym (library, "sframe_decode");
  find_call *find = (find_call *) dlsym (library, "sframe_find_fre");
  int64_t address = strtoull (arguments[2], NULL, 0);
  size_t number = 0;
  while (number < sizeof pcs / sizeof *pcs && scanf ("%ld", &pcs[number]) == 1)
    pcs[number++] -= address;
  void *contexts[2];
  double best[2] = { 1e18, 1e18 };
  for (int which = 0; which < 2; which++)
    {
      FILE *file = fopen (arguments[3 + which], "rb");
      int error;
      if (!file)
        return 2;
      size_t size = fread (sections[which], 1, sizeof sections[which], file);
      contexts[which] = decode (sections[which], size, &error);
      if (!contexts[which] || !number)
        return 2;
    }
  for (int round = 0; round < 2 * atoi (arguments[5]); round++)
    {
      char row[64];
      double start = processor_time ();
      for (size_t i = 0; i < number; i++)
        find (contexts[round % 2], pcs[i], row);
      double time = (processor_time () - start) / number;
      if (time < best[round % 2])
        best[round % 2] = time;
    }
  printf ("%.1f %.1f\n", best[0], best[1]);
  return 0;
}
