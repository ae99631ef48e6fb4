// Calls: functions of the module, and the few that the device runtime brings.
#ifndef ASSAY_EMULATOR_EXECUTE_CALL_H_
#define ASSAY_EMULATOR_EXECUTE_CALL_H_

#include <cstddef>
#include <string_view>

#include "emulator/execute/lanes.h"

namespace assay::emulator {

// Copies Op::data bytes a lane between two places of param space in the register file, from Op::a
// to Op::dst.
void CopyParamSpace(Warp* warp, const Op& op, uint32_t mask);

// Goes to operation Op::data and leaves the one after this in the register of return addresses
// Op::dst.
void CallFunction(Warp* warp, const Op& op, uint32_t mask);

// vprintf and __assertfail: Op::list has offset and bytes a lane of each argument (Op::extra of
// them), then of the result. nullptr: there is no such function.
Handler FindBuiltin(std::string_view name);
// How many arguments it takes.
size_t BuiltinArguments(std::string_view name);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_CALL_H_
