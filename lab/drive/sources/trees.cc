// C++ whose functions are inlined into each other many levels deep: templates, owning pointers, algorithms, closures.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#define OUT_OF_LINE __attribute__((noinline))

static volatile int seen;

template <typename Key> class Tree {
  struct Node {
    Key key;
    int count = 1;
    std::unique_ptr<Node> left, right;
  };
  std::unique_ptr<Node> root_;
  int size_ = 0;

  bool insert(std::unique_ptr<Node> &at, Key key) {
    if (!at) {
      at = std::make_unique<Node>();
      at->key = std::move(key);
      ++size_;
      return true;
    }
    if (key < at->key)
      return insert(at->left, std::move(key));
    if (at->key < key)
      return insert(at->right, std::move(key));
    ++at->count;
    return false;
  }

  template <typename Visit> void each(const std::unique_ptr<Node> &at, Visit &visit, int depth) const {
    if (!at)
      return;
    each(at->left, visit, depth + 1);
    visit(at->key, at->count + depth);
    each(at->right, visit, depth + 1);
  }

public:
  bool insert(Key key) { return insert(root_, std::move(key)); }
  template <typename Visit> void each(Visit visit) const { each(root_, visit, 0); }
  int size() const { return size_; }
};

struct Trace {
  const char *name;
  explicit Trace(const char *name) : name(name) { seen += 1; }
  ~Trace() {
    seen -= 1;
    std::printf("~%s\n", name);
  }
};

OUT_OF_LINE int descend(int depth, const std::string &why) {
  Trace trace("descend");
  if (depth == 0)
    throw std::out_of_range(why);
  return descend(depth - 1, why + ".") + 1;
}

OUT_OF_LINE int recovered(int depth) {
  int before = depth * 3;
  try {
    return descend(depth, "end");
  } catch (const std::logic_error &error) {
    return before + static_cast<int>(std::string(error.what()).size());
  }
}

OUT_OF_LINE std::optional<int> position(const std::vector<std::string> &words, const std::string &wanted) {
  auto found = std::find_if(words.begin(), words.end(), [&](const auto &word) { return word == wanted; });
  if (found == words.end())
    return std::nullopt;
  return static_cast<int>(found - words.begin());
}

OUT_OF_LINE int visited(const Tree<std::string> &tree) {
  std::map<std::string, int> depths;
  int total = 0;
  std::function<void(const std::string &, int)> visit = [&](const std::string &key, int depth) {
    depths[key] += depth;
    total += static_cast<int>(key.size());
  };
  tree.each(visit);
  return total + std::accumulate(depths.begin(), depths.end(), 0, [](int sum, auto &each) { return sum + each.second; });
}

OUT_OF_LINE int ordered(std::vector<std::string> words) {
  std::sort(words.begin(), words.end(), [](const auto &left, const auto &right) {
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return static_cast<int>(words.front().size() * 10 + words.back().size());
}

int main() {
  std::vector<std::string> words{"delta", "alpha", "zulu", "mike", "bravo", "mike", "kilo"};
  Tree<std::string> tree;
  for (const auto &word : words)
    tree.insert(word);
  int result = visited(tree) + ordered(words);
  result += position(words, "bravo").value_or(-1) + position(words, "none").value_or(-1);
  for (int depth = 0; depth < 3; depth++)
    result += recovered(depth);
  std::printf("%d %d %d\n", tree.size(), result, static_cast<int>(seen));
  return 0;
}
