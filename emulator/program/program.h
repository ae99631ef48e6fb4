// A kernel made ready to run: decoded operations over a register file, laid out once and shared by
// all warps.
#ifndef ASSAY_EMULATOR_PROGRAM_PROGRAM_H_
#define ASSAY_EMULATOR_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/ptx/module.h"

namespace assay::emulator {

struct Op;
struct Warp;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

// Executes `op` for the lanes of `mask`, which is never 0. Lanes outside of it keep their
// registers.
using Handler = void (*)(Warp* warp, const Op& op, uint32_t mask);

inline constexpr uint32_t kNoRegister = 0xffffffffu;

// One decoded operation. Register operands are byte offsets into the warp's register file: a
// register of w bytes has kLanes consecutive values of w bytes (8- and 16-bit ones 2), a predicate
// is one uint32_t with a bit a lane. Constants are registers too, filled when a warp is made. What
// else an operation needs is in `data`, `extra` and Program::lists.
struct alignas(64) Op {
  Handler handler = nullptr;
  uint32_t dst = kNoRegister;
  uint32_t a = kNoRegister;
  uint32_t b = kNoRegister;
  uint32_t c = kNoRegister;
  uint32_t d = kNoRegister;
  uint32_t guard = kNoRegister;  // predicate's offset
  uint64_t data = 0;             // an immediate, an address offset, a branch target
  uint32_t extra = 0;            // flags and small numbers, by handler
  uint32_t list = 0;             // first index into Program::lists
  uint16_t list_size = 0;
  bool guard_negated = false;
  bool leader = false;  // first of a basic block
};
static_assert(sizeof(Op) == 64);

// What an operation counts as, lane by lane; feeds the observed arithmetic intensity.
enum class OpClass : uint8_t {
  kOther,
  kInteger,
  kF16,  // operations on half or bfloat16, x2 forms count two a lane
  kF32,
  kF64,
  kSpecial,  // approximate functions
  kTensor,   // flops are in OpInfo, a warp
  kMemory,
  kControl,
};

// Beside each Op, for reports.
struct OpInfo {
  SourceLocation location;
  std::string opcode;
  OpClass op_class = OpClass::kOther;
  int flops = 0;  // floating-point operations a lane (fma: 2), or a warp for kTensor
};

struct ConstantSlot {
  uint32_t offset = 0;
  uint8_t bytes = 4;  // 2, 4, 8, or 1 for a predicate mask
  uint64_t bits = 0;
};

// Registers that the warp fills from its place in the grid.
enum class SpecialRegister : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kDynamicSmemSize,
  kTotalSmemSize,
  kEnvreg1,
  kEnvreg2,
  kZero,
};
struct SpecialSlot {
  SpecialRegister which = SpecialRegister::kTidX;
  uint32_t offset = 0;  // 32-bit values
};

// A shared variable at its offset in the block's shared memory.
struct SharedVariable {
  std::string name;
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct KernelParameter {
  std::string name;
  Type type = Type::kB32;
  uint32_t offset = 0;  // in the parameter buffer
  uint32_t bytes = 0;
};

struct Program {
  std::string kernel;
  std::vector<Op> ops;  // the last one ends every path
  std::vector<OpInfo> info;
  uint32_t entry = 0;  // index of the first operation; functions that are called come before it
  std::vector<uint32_t> priority;  // by op: reverse post-order of its block; smaller runs first
  std::vector<uint32_t> lists;
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  std::vector<KernelParameter> parameters;
  std::vector<SharedVariable> shared_variables;  // static, by offset
  std::vector<std::string> files;                // names by SourceLocation::file
  uint32_t parameter_bytes = 0;
  uint32_t register_bytes = 0;  // of one warp
  uint32_t shared_bytes = 0;    // static
  uint32_t dynamic_shared_align = 16;
  uint32_t local_bytes = 0;     // of one thread
  uint32_t max_threads = 1024;  // of a block
  uint32_t required_threads[3] = {0, 0, 0};
  int mma_arch = 80;  // whose tensor cores are followed: 75, 80, 89, 90
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_PROGRAM_H_
