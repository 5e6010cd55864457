/* A program to record: it sorts below some 20 frames. */
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static unsigned int work(unsigned int n)
{
	int values[200];
	unsigned int s = n;

	for (int i = 0; i < 200; i++) {
		s = s * 1103515245 + 12345;
		values[i] = s >> 8;
	}
	qsort(values, 200, sizeof(*values), compare);
	return values[n % 200] + s;
}

__attribute__((noinline)) static unsigned int down(int depth, unsigned int n)
{
	return depth ? down(depth - 1, n) + 1 : work(n);
}

int main(void)
{
	unsigned int s = 0;

	for (int i = 0; i < 60000; i++)
		s += down(10 + i % 4, s);
	return s == 1;
}
