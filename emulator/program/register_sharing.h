// Which registers of a function can have one place in the register file: those that live inside
// one basic block, one after the other. Compilers give every value a register of its own, and a
// warp's file would not fit into a cache.
//
// Lanes that are elsewhere in the program lose nothing: each has its own part of a place.
#ifndef ASSAY_EMULATOR_PROGRAM_REGISTER_SHARING_H_
#define ASSAY_EMULATOR_PROGRAM_REGISTER_SHARING_H_

#include <cstdint>
#include <vector>

namespace assay::emulator {

// An operand, in the order of the text.
struct RegisterUse {
  uint32_t instruction = 0;
  uint32_t reg = 0;
  bool writes = false;  // in any case, and all of it
};

// For every register one that has its place, itself perhaps. `starts_block` is by instruction,
// `bytes` by register; 0: keeps its own.
std::vector<uint32_t> ShareRegisters(const std::vector<RegisterUse>& uses,
                                     const std::vector<bool>& starts_block,
                                     const std::vector<int>& bytes);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_REGISTER_SHARING_H_
