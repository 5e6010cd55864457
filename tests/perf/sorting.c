/* A C program that sorts, below a stack of 12 calls or fewer.  The benchmark has more calls, and deeper ones. */
#include <stdlib.h>

#include "recorded.h"

#ifndef CALLS
#define VALUES 2000
#define CALLS 800
#define DEPTH(i) ((i) % 12)
#endif

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static unsigned int work(unsigned int n)
{
	int values[VALUES];
	unsigned int s = n;

	for (int i = 0; i < VALUES; i++) {
		s = s * 1103515245 + 12345;
		values[i] = s >> 8;
	}
	qsort(values, VALUES, sizeof(*values), compare);
	return values[n % VALUES] + s;
}

__attribute__((noinline)) static unsigned int down(int depth, unsigned int n)
{
	return depth ? down(depth - 1, n) + 1 : work(n);
}

int main(void)
{
	unsigned int s = 0;

	begin_recording();
	for (int i = 0; i < CALLS; i++)
		s += down(DEPTH(i), s);
	end_recording();
	return s == 1;
}
