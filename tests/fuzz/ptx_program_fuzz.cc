// PTX from anywhere, up to decoded programs: every kernel of a text that parses is built, or
// refused with a reason, and the programs stay within their own bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "emulator/memory/device_memory.h"
#include "emulator/program/builder.h"
#include "emulator/program/decoder.h"

namespace {

using assay::emulator::kNoRegister;
using assay::emulator::Op;
using assay::emulator::Program;

bool IsConsistent(const Program& program) {
  if (program.ops.empty() || program.info.size() != program.ops.size()) return false;
  if (program.priority.size() != program.ops.size() || program.entry >= program.ops.size())
    return false;
  for (const Op& op : program.ops) {
    if (op.handler == nullptr || op.list + op.list_size > program.lists.size()) return false;
    if (op.guard != kNoRegister && op.guard + 4 > program.register_bytes) return false;
  }
  for (const auto& slot : program.constants) {
    if (slot.offset + 32u * slot.bytes > program.register_bytes || slot.bytes > 8) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  assay::emulator::ParseLimits limits;
  limits.variable_bytes_max = 1 << 20;
  const auto module = assay::emulator::ParseModule(text, limits);
  if (!module.ok()) return 0;
  for (const assay::emulator::Function& function : module->functions) {
    if (!function.is_entry || function.is_declaration) continue;
    const auto program = assay::emulator::BuildProgram(
        *module, function.name, assay::emulator::AllOps(),
        [](std::string_view) { return assay::emulator::kGlobalBase; }, 80);
    if (program.ok() ? !IsConsistent(**program) : program.status().message().empty()) std::abort();
  }
  return 0;
}
