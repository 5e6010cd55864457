/* Looks up addresses in sections in the layouts of layouts.py, and measures how long that takes.

   usage: layout_lookup ROUNDS SECTION ... < PCS

   PCS has a number on each line.  A SECTION begins with struct head; after it come shapes, entries and rows.  Prints the
   nanoseconds of a lookup in each section, the best of ROUNDS in turns, and then the row for each number: info byte and
   data words, "-" if there is none.  Exit status 1: a section has another row than the first one.  */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../readers/adapters/processor_time.h"

enum { MOST_SECTIONS = 8, MOST_SHAPES = 255, MOST_PCS = 1 << 20, MOST_BYTES = 1 << 24, SHORT_ENTRY = 8, ENTRY = 16 };

struct head
{
  int64_t first;
  uint32_t dictionary, short_index, shapes, entries;
};

struct section
{
  struct head head;
  const uint8_t *entries, *rows, *shapes[MOST_SHAPES];
};

/* Of an info byte and the data words after it, in bytes.  */
static inline size_t
size_of (const uint8_t *shape)
{
  return 1 + ((shape[0] >> 1 & 15) << (shape[0] >> 5 & 3));
}

static inline uint32_t
word (const uint8_t *at)
{
  uint32_t value;
  memcpy (&value, at, sizeof value);
  return value;
}

static inline int64_t
start_of (const struct section *section, uint32_t number)
{
  int64_t value;
  if (section->head.short_index)
    return word (section->entries + (size_t)number * SHORT_ENTRY);
  memcpy (&value, section->entries + (size_t)number * ENTRY, sizeof value);
  return value;
}

/* Return where the rows for an offset are, and make it one from the entry's start; NULL: there is no entry.  */
static inline const uint8_t *
entry_for (const struct section *section, int64_t *offset)
{
  uint32_t low = 0, high = section->head.entries;
  while (low < high)
    {
      uint32_t middle = low + (high - low) / 2;
      if (start_of (section, middle) <= *offset)
        low = middle + 1;
      else
        high = middle;
    }
  if (low-- == 0)
    return NULL;
  *offset -= start_of (section, low);
  const uint8_t *entry = section->entries + (size_t)low * (section->head.short_index ? SHORT_ENTRY : ENTRY);
  uint32_t rows = word (entry + (section->head.short_index ? 4 : 12));
  if (section->head.short_index ? rows == UINT32_MAX : *offset >= word (entry + 8))
    return NULL;
  return section->rows + rows;
}

static const uint8_t *
lookup (const struct section *section, int64_t pc)
{
  int64_t offset = pc - section->head.first;
  const uint8_t *at = entry_for (section, &offset), *found = NULL;
  if (!at)
    return NULL;
  unsigned count = at[0] | at[1] << 8, width = 1 << (at[2] & 15);
  if (at[4])
    offset %= at[4];
  for (at += 5; count; count--)
    {
      uint32_t start = width == 1 ? at[0] : width == 2 ? at[0] | (uint32_t)at[1] << 8 : word (at);
      if (start > offset)
        break;
      at += width;
      if (section->head.dictionary && *at++ != MOST_SHAPES)
        found = section->shapes[at[-1]];
      else
        {
          found = at;
          at += size_of (at);
        }
    }
  return found;
}

static int
differ (const uint8_t *one, const uint8_t *other)
{
  return one && other ? memcmp (one, other, size_of (one)) : one != other;
}

int
main (int count, char **arguments)
{
  static struct section sections[MOST_SECTIONS];
  static int64_t pcs[MOST_PCS];
  int number = 0, given = count - 2;
  double best[MOST_SECTIONS];
  if (given < 1 || given > MOST_SECTIONS)
    return 2;
  for (int i = 0; i < given; i++)
    {
      FILE *file = fopen (arguments[2 + i], "rb");
      uint8_t *at = malloc (MOST_BYTES);
      if (!file || !at || fread (at, 1, MOST_BYTES, file) < sizeof (struct head))
        return 2;
      memcpy (&sections[i].head, at, sizeof (struct head));
      at += sizeof (struct head);
      for (uint32_t shape = 0; shape < sections[i].head.shapes; at += size_of (at))
        sections[i].shapes[shape++] = at;
      sections[i].entries = at;
      sections[i].rows = at + (size_t)sections[i].head.entries * (sections[i].head.short_index ? SHORT_ENTRY : ENTRY);
      best[i] = 1e18;
    }
  while (number < MOST_PCS && scanf ("%ld", &pcs[number]) == 1)
    number++;
  if (!number)
    return 2;
  for (int round = 0; round < atoi (arguments[1]) * given; round++)
    {
      int which = round % given;
      volatile uintptr_t used __attribute__ ((unused));
      double start = processor_time ();
      for (int i = 0; i < number; i++)
        used = (uintptr_t)lookup (&sections[which], pcs[i]);
      double time = (processor_time () - start) / number;
      if (time < best[which])
        best[which] = time;
    }
  for (int i = 0; i < given; i++)
    printf ("%.1f%c", best[i], i + 1 < given ? ' ' : '\n');
  int status = 0;
  for (int i = 0; i < number; i++)
    {
      const uint8_t *row = lookup (&sections[0], pcs[i]);
      for (int which = 1; which < given; which++)
        status |= differ (row, lookup (&sections[which], pcs[i])) != 0;
      for (size_t byte = 0; row && byte < size_of (row); byte++)
        printf ("%02x", row[byte]);
      puts (row ? "" : "-");
    }
  return status;
}
