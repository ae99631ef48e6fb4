// The Decoder that lays out a program. Private to program/.
#ifndef ASSAY_EMULATOR_PROGRAM_PROGRAM_BUILDER_H_
#define ASSAY_EMULATOR_PROGRAM_PROGRAM_BUILDER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/program/builder.h"
#include "emulator/program/decoder.h"
#include "emulator/program/register_sharing.h"

namespace assay::emulator {

inline uint32_t RoundUp(uint64_t value, uint64_t to) {
  return static_cast<uint32_t>((value + to - 1) / to * to);
}

// A function that the kernel is or calls, and where it lies.
struct FunctionLayout {
  const Function* function = nullptr;
  std::vector<uint32_t> registers;  // offsets; kNoRegister until first used
  std::map<std::string, ParamPlace, std::less<>> params;
  std::map<std::string, uint32_t, std::less<>> locals;  // addresses
  uint32_t return_address = kNoRegister;
  uint32_t first_op = 0;
  uint32_t last_op = 0;
  std::vector<uint32_t> op_of_instruction;
  std::vector<RegisterUse> uses;   // of `registers`
  std::vector<bool> starts_block;  // by instruction
  std::vector<uint32_t> places;    // ShareRegisters; empty: each its own
};

class ProgramBuilder : public Decoder {
 public:
  ProgramBuilder(const Module& module, const OpTable& table, const VariableResolver& resolve)
      : module_(module), table_(table), resolve_(resolve), program_(std::make_unique<Program>()) {}

  absl::StatusOr<std::unique_ptr<Program>> Build(std::string_view kernel, int mma_arch);

  // After Build: which registers of each function may share places, for the builder that lays the
  // program out.
  using Places = std::map<std::string, std::vector<uint32_t>, std::less<>>;
  Places FindPlaces() const;
  void SetPlaces(Places places) { places_ = std::move(places); }

  absl::StatusOr<uint32_t> Source(const Operand& operand, Type type) override;
  absl::StatusOr<uint32_t> SourceAnyWidth(const Operand& operand, Type type, int* width) override;
  absl::StatusOr<uint32_t> Destination(const Operand& operand, Type type) override;
  absl::StatusOr<uint32_t> DestinationAnyWidth(const Operand& operand, Type type,
                                               int* width) override;
  absl::StatusOr<uint32_t> Predicate(const Operand& operand, bool* negated) override;
  absl::StatusOr<uint32_t> PredicateDestination(const Operand& operand) override;
  absl::StatusOr<uint32_t> PairPredicate(const Operand& operand) override;
  uint32_t Scratch(int bytes_per_lane) override;
  uint32_t Constant(uint64_t bits, int bytes) override;
  absl::Status Address(const Operand& operand, uint32_t* reg, int64_t* offset,
                       bool* narrow) override;
  absl::StatusOr<ParamPlace> FindParam(std::string_view name) override;
  absl::Status BranchTo(std::string_view label, Op* op) override;
  uint32_t ReturnAddress() override { return current_->return_address; }
  uint32_t AddList(const std::vector<uint32_t>& values) override;
  OpInfo* info() override { return &info_; }
  Program* program() override { return program_.get(); }

 private:
  // What is over the limit of the register file lies at 0, until CheckRegisterBytes tells of it.
  uint32_t Allocate(int64_t bytes_per_lane);
  absl::Status CheckRegisterBytes() const;
  // `writes`: all of it, for the lanes that execute the instruction.
  absl::StatusOr<uint32_t> RegisterOffset(int reg, bool writes = false);
  Type RegisterType(int reg) const {
    return current_->function->registers[static_cast<size_t>(reg)].type;
  }
  absl::StatusOr<uint64_t> SymbolAddress(std::string_view name);
  uint64_t ImmediateBits(const Operand& operand, Type type) const;

  absl::Status CollectFunctions(const Function& entry);
  absl::Status OrderFunctions(const Function* function, std::vector<const Function*>* path);
  absl::Status LayOutParameters(FunctionLayout* layout);
  absl::Status LayOutShared();
  absl::Status LayOutLocals(FunctionLayout* layout);
  absl::Status DecodeFunction(FunctionLayout* layout);
  absl::Status DecodeInstruction(const Instruction& instruction);
  absl::Status DecodeCall(const Instruction& instruction);
  absl::Status CallBuiltin(const Instruction& instruction, std::string_view name,
                           const Operand* results, const Operand* arguments);
  absl::Status CopyParams(const Operand* operands, const FunctionLayout& callee,
                          const std::vector<Parameter>& parameters, bool into_callee);
  void Emit(Op op);
  void Finish();
  void MarkBlockStarts(FunctionLayout* layout) const;
  absl::Status AddContext(const absl::Status& status, const Instruction& instruction) const;

  const Module& module_;
  const OpTable& table_;
  const VariableResolver& resolve_;
  std::unique_ptr<Program> program_;
  std::map<std::string, FunctionLayout, std::less<>> functions_;
  std::vector<const Function*> order_;  // callees first
  FunctionLayout* current_ = nullptr;
  const Instruction* instruction_ = nullptr;
  OpInfo info_;
  std::map<std::pair<uint64_t, int>, uint32_t> constants_;
  std::map<SpecialRegister, uint32_t> specials_;
  std::map<std::string, uint32_t, std::less<>> shared_;  // addresses
  int64_t register_bytes_ = 0;
  Places places_;

  // What is filled in when every operation has its place.
  struct LabelFixup {
    uint32_t op = 0;
    const FunctionLayout* layout = nullptr;
    std::vector<int> instructions;
    bool is_list = false;
  };
  struct CallFixup {
    uint32_t op = 0;
    const FunctionLayout* callee = nullptr;
  };
  std::vector<LabelFixup> pending_labels_;  // of the operation being decoded
  std::vector<LabelFixup> label_fixups_;
  std::vector<CallFixup> call_fixups_;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PROGRAM_PROGRAM_BUILDER_H_
