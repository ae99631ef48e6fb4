// Products against mmasim, where it is there: in the Python ASSAY_MMASIM_PYTHON, or where
// scripts/setup puts it for /usr/bin/python3.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/ops/mma_dot.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr int kNotInstalled = 77;

std::string ScriptPath() {
  const char* const source = std::getenv("ASSAY_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/emulator/testing/mma_reference.py";
}

// The output, and the exit code.
std::string RunScript(const std::string& arguments, int* code) {
  const char* const python = std::getenv("ASSAY_MMASIM_PYTHON");
  const std::string command = std::string(python != nullptr ? python : "/usr/bin/python3") + " '" +
                              ScriptPath() + "' " + arguments + " 2>/dev/null";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  std::vector<char> buffer(1 << 16);
  size_t count = 0;
  while ((count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  *code = status >= 0 && status % 256 == 0 ? status / 256 : -1;
  return output;
}

struct ReferenceCase {
  int arch = 0;
  std::string form;
  std::map<char, std::vector<uint64_t>> matrices;
};

ReferenceCase Parse(const std::string& line) {
  ReferenceCase reference;
  std::istringstream words(line);
  words >> reference.arch >> reference.form;
  std::string word;
  char matrix = 0;
  while (words >> word) {
    if (word.size() == 1 && word[0] >= 'A' && word[0] <= 'D') {
      matrix = word[0];
    } else {
      reference.matrices[matrix].push_back(std::strtoull(word.c_str(), nullptr, 16));
    }
  }
  return reference;
}

std::vector<uint32_t> PackWords(const std::vector<uint64_t>& elements, int bits) {
  std::vector<uint32_t> words((elements.size() * static_cast<size_t>(bits) + 31) / 32);
  for (size_t i = 0; i < elements.size(); ++i) {
    const size_t at = i * static_cast<size_t>(bits);
    words[at / 32] |= static_cast<uint32_t>(elements[i]) << (at % 32);
  }
  return words;
}

MmaProblem ProblemOf(const ReferenceCase& reference) {
  MmaProblem problem;
  std::vector<std::string> parts;
  std::istringstream form(reference.form);
  for (std::string part; std::getline(form, part, '.');) parts.push_back(part);
  if (parts.size() != 5) return problem;
  const Tile tile = ParseTile(parts[0]);
  problem.rows = tile.m;
  problem.columns = tile.n;
  problem.k = tile.k;
  problem.d = ParseElement(parts[1]);
  problem.a = ParseElement(parts[2]);
  problem.b = ParseElement(parts[3]);
  problem.c = ParseElement(parts[4]);
  problem.arch = reference.arch;
  return problem;
}

std::vector<uint64_t> Multiply(const MmaProblem& problem, ReferenceCase* reference) {
  std::vector<uint64_t> values = reference->matrices['C'];
  if (problem.a == Element::kF64) {
    MultiplyDouble(problem, reference->matrices['A'].data(), reference->matrices['B'].data(),
                   values.data());
    return values;
  }
  const std::vector<uint32_t> a = PackWords(reference->matrices['A'], ElementBits(problem.a));
  const std::vector<uint32_t> b = PackWords(reference->matrices['B'], ElementBits(problem.b));
  std::vector<uint32_t> narrow(values.begin(), values.end());
  MultiplyFloat(problem, a.data(), b.data(), narrow.data());
  return {narrow.begin(), narrow.end()};
}

TEST(MmaReference, MatchesMmasim) {
  const std::string arguments = "--seed 20 --count 12";
  int code = -1;
  const std::string output = RunScript(arguments, &code);
  // A shell that does not find the interpreter exits with 127.
  if (code == kNotInstalled || code == 127) {
    GTEST_SKIP()
        << "no mmasim: run scripts/setup, or set ASSAY_MMASIM_PYTHON to a Python that has it";
  }
  ASSERT_EQ(code, 0) << ScriptPath() << " " << arguments;
  std::istringstream lines(output);
  std::map<std::string, int> forms;
  for (std::string line; std::getline(lines, line);) {
    ReferenceCase reference = Parse(line);
    const MmaProblem problem = ProblemOf(reference);
    ASSERT_GT(problem.rows, 0) << line.substr(0, 60);
    const std::string name = "sm_" + std::to_string(reference.arch) + " " + reference.form;
    ++forms[name];
    const std::vector<uint64_t> values = Multiply(problem, &reference);
    const std::vector<uint64_t>& expected = reference.matrices['D'];
    ASSERT_EQ(values.size(), expected.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], expected[i])
          << name << " number " << forms[name] << " of " << arguments << ", element " << i;
    }
  }
  EXPECT_GE(forms.size(), 40u);
}

}  // namespace
}  // namespace assay::emulator
