// Threads that sort and throw, with stacks of different depths.
#include <pthread.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "recorded.h"

static pthread_barrier_t barrier;

static unsigned int sorted(unsigned int seed)
{
	std::vector<std::string> words;

	for (int i = 0; i < 300; i++) {
		seed = seed * 1103515245 + 12345;
		words.push_back(std::to_string(seed));
	}
	std::sort(words.begin(), words.end());
	return words[seed % 300].size();
}

__attribute__((noinline)) static unsigned int down(int depth, unsigned int seed)
{
	if (depth)
		return down(depth - 1, seed) + 1;
	if (seed % 5 == 0)
		throw std::runtime_error("five");
	return sorted(seed);
}

static void work(unsigned int seed)
{
	std::map<unsigned int, unsigned int> found;

	pthread_barrier_wait(&barrier); // All threads have started.
	pthread_barrier_wait(&barrier); // The recording has begun.
	for (unsigned int i = 0; i < 1500; i++) {
		try {
			found[i % 97] += down(i % 20, seed + i);
		} catch (const std::runtime_error &) {
			found[i % 97]--;
		}
	}
	pthread_barrier_wait(&barrier); // All threads have finished their work.
	pthread_barrier_wait(&barrier); // The recording has ended.
}

int main()
{
	std::vector<std::thread> threads;

	pthread_barrier_init(&barrier, nullptr, 4);
	for (unsigned int i = 0; i < 3; i++)
		threads.emplace_back(work, i * 7919);
	pthread_barrier_wait(&barrier);
	begin_recording();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	end_recording();
	pthread_barrier_wait(&barrier);
	for (auto &one : threads)
		one.join();
}
