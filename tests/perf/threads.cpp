// Threads that sort and throw, with stacks of different depths.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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

	for (unsigned int i = 0; i < 700; i++) {
		try {
			found[i % 97] += down(i % 20, seed + i);
		} catch (const std::runtime_error &) {
			found[i % 97]--;
		}
	}
}

int main()
{
	std::vector<std::thread> threads;

	for (unsigned int i = 0; i < 3; i++)
		threads.emplace_back(work, i * 7919);
	for (auto &one : threads)
		one.join();
}
