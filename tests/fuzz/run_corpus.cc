// Stands in for libFuzzer where the compiler has none: runs every file of the folders that are
// named, and mutations of them. Usage: NAME_fuzz CORPUS... ; ASSAY_FUZZ_SEED and ASSAY_FUZZ_RUNS
// change what is tried.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kBytesMax = 1 << 16;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void Run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  std::string Next() {
    std::string bytes = Pick();
    for (size_t changes = 1 + Below(4); changes > 0; --changes) Change(&bytes);
    if (bytes.size() > kBytesMax) bytes.resize(kBytesMax);
    return bytes;
  }

 private:
  size_t Below(size_t end) { return static_cast<size_t>(random_() % end); }
  const std::string& Pick() { return corpus_[Below(corpus_.size())]; }

  void Change(std::string* bytes) {
    const size_t at = Below(bytes->size() + 1);
    const size_t count = std::min(bytes->size() - at, Below(16) + 1);
    switch (Below(6)) {
      case 0:
        bytes->insert(at, 1, static_cast<char>(Below(256)));
        break;
      case 1:
        bytes->erase(at, count);
        break;
      case 2:
        if (at < bytes->size()) (*bytes)[at] = static_cast<char>(Below(256));
        break;
      case 3:
        bytes->insert(at, bytes->substr(at, count));
        break;
      case 4: {
        const std::string& other = Pick();
        bytes->insert(at, other.substr(Below(other.size() + 1), Below(64)));
        break;
      }
      default:
        bytes->insert(at, std::to_string(static_cast<int64_t>(random_())));
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    Run(corpus.back());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "the corpus is empty; name its folder\n");
    return 2;
  }
  const uint64_t seed = FromEnvironment("ASSAY_FUZZ_SEED", 1);
  const uint64_t runs = FromEnvironment("ASSAY_FUZZ_RUNS", 20'000);
  std::printf("%zu files, %llu mutations, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Mutator mutator(corpus, seed);
  for (uint64_t i = 0; i < runs; ++i) Run(mutator.Next());
  return 0;
}
