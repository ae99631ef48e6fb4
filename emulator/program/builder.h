// From a parsed kernel to a Program.
#ifndef ASSAY_EMULATOR_PROGRAM_BUILDER_H_
#define ASSAY_EMULATOR_PROGRAM_BUILDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "emulator/program/program.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

class OpTable;

// Device address of a global or const variable of the module.
using VariableResolver = std::function<absl::StatusOr<uint64_t>(std::string_view name)>;

// NOT_FOUND when the module has no such kernel; UNIMPLEMENTED or INVALID_ARGUMENT naming opcode,
// line and kernel for what cannot be run. The module must not outlive the call.
absl::StatusOr<std::unique_ptr<Program>> BuildProgram(const Module& module, std::string_view kernel,
                                                      const OpTable& table,
                                                      const VariableResolver& resolve,
                                                      int mma_arch);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_BUILDER_H_
