// Runs one instruction on a warp, for tests of arithmetic operations, and compares many results
// with a reference.
//
// An instruction is text whose registers name their width and their role: %ra is 32 bits wide and
// the first input. Widths: b (8 bits), h (16), r (32), d (64), q (128), p (predicate). Inputs are
// a, b, c, d, e; outputs x, y, z, w. "setp.lt.and.f32 %px|%py, %ra, %rb, !%pc" has two outputs and
// three inputs. Not thread-safe.
#ifndef ASSAY_EMULATOR_TESTING_OP_FIXTURE_H_
#define ASSAY_EMULATOR_TESTING_OP_FIXTURE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "emulator/execute/lanes.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

inline constexpr int kInputsMax = 5;
inline constexpr int kOutputsMax = 4;
using OpInputs = std::array<uint64_t, kInputsMax>;
using OpOutputs = std::array<uint64_t, kOutputsMax>;

// One warp with its registers, and the operation it executes.
class OpFixture {
 public:
  OpFixture();
  ~OpFixture();
  OpFixture(const OpFixture&) = delete;
  OpFixture& operator=(const OpFixture&) = delete;

  // Replaces the operation. Registers keep their place, by name, and their values.
  absl::Status Decode(std::string_view text);
  void Run(uint32_t mask);

  // Values by lane; a 128-bit register has its low half here.
  void Set(std::string_view name, int lane, uint64_t value);
  uint64_t Get(std::string_view name, int lane) const;
  uint32_t OffsetOf(std::string_view name) const;
  // The carry flag, one bit a lane.
  uint32_t carry() const;
  void set_carry(uint32_t lanes);

  // Whether approximate functions are perturbed, and what ClockOf begins with.
  void set_perturb(bool perturb);
  void set_clock(uint64_t clock);

  Op* op() { return &op_; }
  const OpInfo& info() const;
  // Names of the registers of the present instruction.
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }

 private:
  friend bool PerturbApproximations(Warp* warp);
  friend uint64_t NextRandom(Warp* warp);
  friend uint64_t ClockOf(Warp* warp);
  class FakeDecoder;
  struct FakeWarp;

  std::unique_ptr<FakeWarp> warp_;
  std::unique_ptr<FakeDecoder> decoder_;
  OpTable table_;
  Op op_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
};

// What the outputs must be for given inputs.
using OpReference = std::function<OpOutputs(const OpInputs&)>;

// Runs `text` on every case, 32 at a time, with full and with partial masks, and with the
// destination in the place of each source of its width. Every bit must agree with the reference,
// and lanes outside of the mask must keep what they had: otherwise the test fails, with the first
// few cases. Returns how many cases there were.
int64_t CheckOp(std::string_view text, const std::vector<OpInputs>& cases,
                const OpReference& reference);

// Adds up the cases of a test and prints them when it ends.
class CaseCount {
 public:
  explicit CaseCount(std::string name) : name_(std::move(name)) {}
  ~CaseCount();
  CaseCount(const CaseCount&) = delete;
  CaseCount& operator=(const CaseCount&) = delete;
  void Add(int64_t cases) { cases_ += cases; }

 private:
  const std::string name_;
  int64_t cases_ = 0;
};

// The status of decoding `text`, for forms that must be refused.
absl::Status DecodeOnly(std::string_view text);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_TESTING_OP_FIXTURE_H_
