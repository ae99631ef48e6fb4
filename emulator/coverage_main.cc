// assay-ptx-coverage FILE.ptx...: what the kernels of PTX files need, and whether the emulated
// driver has it.
//
// Exit code 0: every kernel runs; 1: some operation is not emulated; 2: a file cannot be read or
// parsed.
#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "emulator/engine.h"
#include "emulator/program/builder.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {
namespace {

constexpr size_t kFileBytesMax = 64 << 20;

// Decodes every kernel. An address is whatever: nothing runs.
int Cover(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kFileBytesMax);
  if (!text.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(text.status().message()).c_str());
    return 2;
  }
  const absl::StatusOr<Module> module = ParseModule(*text);
  if (!module.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(module.status().message()).c_str());
    return 2;
  }
  int kernels = 0;
  int running = 0;
  std::map<std::string, int> counts;  // by spelling
  for (const Function& function : module->functions) {
    if (!function.is_entry || function.is_declaration) continue;
    ++kernels;
    for (const Instruction& instruction : function.instructions) ++counts[instruction.opcode];
    const auto program = BuildProgram(
        *module, function.name, AllOps(), [](std::string_view) { return kGlobalBase; }, 80);
    if (program.ok()) {
      ++running;
    } else {
      std::printf("%s: %s: %s\n", path.c_str(), function.name.c_str(),
                  std::string(program.status().message()).c_str());
    }
  }
  for (const auto& [opcode, count] : counts) {
    const std::string mnemonic = opcode.substr(0, opcode.find('.'));
    const bool known = mnemonic == "call" || AllOps().Find(mnemonic) != nullptr;
    std::printf("%s: %6d %s%s\n", path.c_str(), count, opcode.c_str(),
                known ? "" : "  (mnemonic not emulated)");
  }
  std::printf("%s: %d of %d kernels can be run\n", path.c_str(), running, kernels);
  return running == kernels ? 0 : 1;
}

}  // namespace
}  // namespace assay::emulator

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: assay-ptx-coverage FILE.ptx...\n");
    return 2;
  }
  int worst = 0;
  for (int i = 1; i < argc; ++i) {
    const int code = assay::emulator::Cover(argv[i]);
    worst = code > worst ? code : worst;
  }
  return worst;
}
