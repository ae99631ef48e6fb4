// Splits the text of one instruction, for tests that do not want the whole of a module.
#ifndef ASSAY_EMULATOR_TESTING_OP_TEXT_H_
#define ASSAY_EMULATOR_TESTING_OP_TEXT_H_

#include <functional>
#include <string_view>

#include "emulator/ptx/module.h"

namespace assay::emulator {

// Index of a register by its name.
using RegisterIndex = std::function<int(std::string_view name)>;

// "add.f32 %rx, %ra, 0f3f800000": registers, p|q, !p, {a, b}, _, integers, floats and special
// registers (%clock64). The text is a test's own, so what it cannot read ends the program.
Instruction SplitInstruction(std::string_view text, const RegisterIndex& index);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_TESTING_OP_TEXT_H_
