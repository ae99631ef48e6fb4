// Names of the registers that a warp fills from its place in the grid. Pure.
#ifndef ASSAY_EMULATOR_PROGRAM_SPECIAL_REGISTERS_H_
#define ASSAY_EMULATOR_PROGRAM_SPECIAL_REGISTERS_H_

#include <optional>
#include <string_view>

#include "emulator/program/program.h"

namespace assay::emulator {

// "%tid.x" to kTidX. nullopt for one that a warp does not fill in, such as a clock.
std::optional<SpecialRegister> FindSpecialRegister(std::string_view name);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_SPECIAL_REGISTERS_H_
