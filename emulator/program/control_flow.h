// Basic blocks of a program and the order in which waiting groups of lanes run.
#ifndef ASSAY_EMULATOR_PROGRAM_CONTROL_FLOW_H_
#define ASSAY_EMULATOR_PROGRAM_CONTROL_FLOW_H_

#include <cstdint>
#include <vector>

#include "emulator/program/program.h"

namespace assay::emulator {

// Where an operation may go on inside its function.
struct Successors {
  std::vector<uint32_t> targets;
  bool falls_through = true;
};

// Marks the leaders among the operations [first, last) of one function and fills Program::priority
// for them, from `priority_base` on: the reverse post-order of a depth-first walk that goes to
// later text first, so that a loop's body comes before what follows the loop. `successors` has an
// entry for each of them. Returns the first priority that was not used.
uint32_t OrderBlocks(uint32_t first, uint32_t last, const std::vector<Successors>& successors,
                     uint32_t priority_base, Program* program);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_CONTROL_FLOW_H_
