// A warp without a block, for tests of single operations: decodes an instruction that the test puts
// together, runs its handler, and keeps what it asks of the machine.
//
// Stands in for execute/warp.h and execute/memory_access.h, so a test links either this or those.
#ifndef ASSAY_EMULATOR_TESTING_FAKE_WARP_H_
#define ASSAY_EMULATOR_TESTING_FAKE_WARP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "emulator/execute/lanes.h"
#include "emulator/program/decoder.h"
#include "emulator/report.h"

namespace assay::emulator {

struct FakeFault {
  int lane = 0;
  FaultKind kind = FaultKind::kNone;
  std::string message;
};

class FakeWarp : public Warp {
 public:
  explicit FakeWarp(int mma_arch = 80);
  ~FakeWarp();
  FakeWarp(const FakeWarp&) = delete;
  FakeWarp& operator=(const FakeWarp&) = delete;

  // A new register, zero in all lanes, as an operand.
  Operand NewRegister(Type type);
  std::vector<Operand> NewRegisters(Type type, int count);
  // The values of a register, or of a predicate as one mask.
  template <typename T>
  T* Values(const Operand& operand) {
    return Lanes<T>(this, OffsetOf(operand));
  }
  uint32_t& Mask(const Operand& operand) { return *Values<uint32_t>(operand); }

  // "mma.sync.aligned...." becomes the operation that Run executes.
  absl::Status Decode(std::string_view opcode, std::vector<Operand> operands);
  // Executes it for `mask` with all live lanes active.
  void Run(uint32_t mask = kAllLanes);

  const Op& op() const { return op_; }
  const OpInfo& info() const;

  std::vector<FakeFault> faults;
  std::vector<uint32_t> parked;    // masks that Converge made wait
  std::vector<uint32_t> barriers;  // masks that met at WarpBarrier
  // From kSharedBase and kGlobalBase on.
  std::vector<std::byte> shared;
  std::vector<std::byte> global;
  bool fast_accesses = true;  // whole-warp accesses may succeed
  int fast_access_count = 0;

 private:
  class FakeDecoder;
  uint32_t OffsetOf(const Operand& operand) const;

  std::unique_ptr<FakeDecoder> decoder_;
  Op op_;
};

// Operands.
Operand Integer(int64_t value);
Operand Vector(std::vector<Operand> elements);
Operand Address(const Operand& base, int64_t offset = 0);
Operand WithPredicate(Operand destination, const Operand& predicate);
Operand Negated(Operand predicate);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_TESTING_FAKE_WARP_H_
