// Only for tests: what every parsed module keeps, and texts for operands.
#ifndef ASSAY_EMULATOR_PTX_MODULE_CHECK_H_
#define ASSAY_EMULATOR_PTX_MODULE_CHECK_H_

#include <string>

#include "emulator/ptx/module.h"

namespace assay::emulator {

// What is wrong with `module`: an index beyond its table, an image larger than its variable and so
// on. Empty: nothing.
std::string CheckModule(const Module& module);

// "%r1", "!%p1", "%r1|%p1", "5", "1.5d", "0x3f800000f", "name+4", "[%rd1-8]", "[%rd1, {%r1, %r2}]",
// "_", "%tid.x".
std::string OperandText(const Function& function, const Operand& operand);

// "@!%p1 add.s32 %r1, %r2, 5".
std::string InstructionText(const Function& function, const Instruction& instruction);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_MODULE_CHECK_H_
