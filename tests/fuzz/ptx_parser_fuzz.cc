// PTX from anywhere: parsing ends, errors name a line, and what parses is consistent and parses the
// same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "emulator/ptx/module.h"
#include "emulator/ptx/module_check.h"

namespace {

size_t CountInstructions(const assay::emulator::Module& module) {
  size_t count = 0;
  for (const assay::emulator::Function& function : module.functions) {
    for (const assay::emulator::Instruction& instruction : function.instructions) {
      if (assay::emulator::InstructionText(function, instruction).empty()) std::abort();
      ++count;
    }
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  assay::emulator::ParseLimits limits;
  limits.variable_bytes_max = 1 << 20;
  const auto module = assay::emulator::ParseModule(text, limits);
  if (!module.ok()) {
    if (module.status().message().substr(0, 5) != "line ") std::abort();
    return 0;
  }
  if (!assay::emulator::CheckModule(*module).empty()) std::abort();
  const auto again = assay::emulator::ParseModule(text, limits);
  if (!again.ok() || CountInstructions(*again) != CountInstructions(*module)) std::abort();
  return 0;
}
