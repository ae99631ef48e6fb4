// What the files in ops/ see when they turn an instruction into an Op.
//
// A decode function checks every modifier and operand it gets: one that it does not know is
// UNIMPLEMENTED, an operand of the wrong kind or width INVALID_ARGUMENT. The caller adds opcode,
// line and kernel to the message.
#ifndef ASSAY_EMULATOR_PROGRAM_DECODER_H_
#define ASSAY_EMULATOR_PROGRAM_DECODER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "emulator/program/program.h"

namespace assay::emulator {

// A parameter of the kernel, or param space of a call: there every lane has `bytes` of its own,
// lane after lane.
struct ParamPlace {
  bool is_kernel_parameter = false;
  uint32_t offset = 0;  // in the parameter buffer, or in the register file
  int64_t bytes = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  // Register file offset of a source of `type`: a register of that width, a constant broadcast at
  // that width (an integer for a float type is converted, a float constant for an integer type
  // refused), a special register, or the address of a variable. With `any_width` a wider register
  // will do, as ld, st and cvt allow; `*width` is then its width in bytes.
  virtual absl::StatusOr<uint32_t> Source(const Operand& operand, Type type) = 0;
  virtual absl::StatusOr<uint32_t> SourceAnyWidth(const Operand& operand, Type type,
                                                  int* width) = 0;
  // The same for a destination; a sink (_) gives a register that nobody reads.
  virtual absl::StatusOr<uint32_t> Destination(const Operand& operand, Type type) = 0;
  virtual absl::StatusOr<uint32_t> DestinationAnyWidth(const Operand& operand, Type type,
                                                       int* width) = 0;
  // A predicate source; `*negated` tells of !p.
  virtual absl::StatusOr<uint32_t> Predicate(const Operand& operand, bool* negated) = 0;
  virtual absl::StatusOr<uint32_t> PredicateDestination(const Operand& operand) = 0;
  // The second destination of d|p; kNoRegister when there is none.
  virtual absl::StatusOr<uint32_t> PairPredicate(const Operand& operand) = 0;
  // Registers nobody else uses, e.g. for a product between two steps.
  virtual uint32_t Scratch(int bytes_per_lane) = 0;
  // A constant of `bytes` (2, 4, 8), broadcast.
  virtual uint32_t Constant(uint64_t bits, int bytes) = 0;

  // An address operand: 64-bit or 32-bit register (or constant) offset in `*reg`, displacement in
  // `*offset`, and whether the register has 4 bytes.
  virtual absl::Status Address(const Operand& operand, uint32_t* reg, int64_t* offset,
                               bool* narrow) = 0;

  // The carry flag of add.cc and its kin, a predicate: one for the whole program.
  uint32_t CarryFlag() {
    if (carry_flag_ == kNoRegister) carry_flag_ = Scratch(2);
    return carry_flag_;
  }

  // Where a name of the param space lies. NOT_FOUND.
  virtual absl::StatusOr<ParamPlace> FindParam(std::string_view name) {
    return absl::NotFoundError("no parameter");
  }
  // Makes Op::data the index of the operation at a label or, where the name is that of a list of
  // targets, Op::list that of their indices, when all operations are there.
  virtual absl::Status BranchTo(std::string_view label, Op* op) {
    return absl::NotFoundError("no label");
  }

  // The register of return addresses of the function that is being decoded; kNoRegister in a
  // kernel.
  virtual uint32_t ReturnAddress() { return kNoRegister; }

  // Appends to Program::lists; returns the first index.
  virtual uint32_t AddList(const std::vector<uint32_t>& values) = 0;
  virtual OpInfo* info() = 0;  // of the operation that is being decoded
  virtual Program* program() = 0;

 private:
  uint32_t carry_flag_ = kNoRegister;
};

using DecodeFunction = absl::Status (*)(const Instruction& instruction, Decoder* decoder, Op* op);

// Every mnemonic that is known. One file of ops/ adds its own in one function, named in
// op_table.cc.
class OpTable {
 public:
  // `mnemonic` is what stands before the first dot. Later additions of the same one are an error of
  // ours.
  void Add(std::string_view mnemonic, DecodeFunction decode);
  DecodeFunction Find(std::string_view mnemonic) const;

 private:
  std::map<std::string, DecodeFunction, std::less<>> functions_;
};

// The table with all of ops/.
const OpTable& AllOps();

// For decode functions: walks the modifiers in order, so that each is looked at once.
class Modifiers {
 public:
  explicit Modifiers(const Instruction& instruction) : modifiers_(instruction.modifiers) {}
  // True, and goes on to the next, when the present one is `name`.
  bool Take(std::string_view name);
  // The present one as a type, and goes on; kNone and stays otherwise.
  Type TakeType();
  std::string_view current() const { return at_end() ? std::string_view() : modifiers_[next_]; }
  void Skip() { ++next_; }
  bool at_end() const { return next_ >= modifiers_.size(); }
  // UNIMPLEMENTED naming the present modifier unless all were taken.
  absl::Status Finish() const;

 private:
  const std::vector<std::string>& modifiers_;
  size_t next_ = 0;
};

// INVALID_ARGUMENT unless the instruction has from `least` to `most` operands.
absl::Status CheckOperandCount(const Instruction& instruction, size_t least, size_t most);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_DECODER_H_
