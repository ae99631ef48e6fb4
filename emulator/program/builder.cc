#include "emulator/program/builder.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "emulator/execute/call.h"
#include "emulator/memory/device_memory.h"
#include "emulator/program/control_flow.h"
#include "emulator/program/program_builder.h"

namespace assay::emulator {
namespace {

constexpr uint32_t kLocalBytesMax = 512 << 10;  // of one thread, as on devices
constexpr size_t kOpsMax = 2'000'000;
constexpr int64_t kParameterBytesMax = 32764;  // of a kernel, as since PTX 8.1
constexpr size_t kCallDepthMax = 256;

}  // namespace

// A function's callees come before it; calling itself is refused, since registers have one place.
absl::Status ProgramBuilder::OrderFunctions(const Function* function,
                                            std::vector<const Function*>* path) {
  if (std::find(path->begin(), path->end(), function) != path->end()) {
    return absl::UnimplementedError(
        absl::StrCat("kernel ", program_->kernel, ": function ", function->name,
                     " calls itself, directly or not, which is not emulated"));
  }
  if (functions_.count(function->name) != 0) return absl::OkStatus();
  if (path->size() >= kCallDepthMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "kernel ", program_->kernel, ": calls nest deeper than ", kCallDepthMax, " functions"));
  }
  path->push_back(function);
  for (const Instruction& instruction : function->instructions) {
    if (instruction.mnemonic != "call") continue;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::kSymbol) continue;
      const Function* const callee = module_.FindFunction(operand.symbol);
      if (callee == nullptr || callee->is_declaration) continue;
      ASSAY_RETURN_IF_ERROR(OrderFunctions(callee, path));
    }
  }
  path->pop_back();
  FunctionLayout& layout = functions_[function->name];
  layout.function = function;
  layout.registers.assign(function->registers.size(), kNoRegister);
  if (const auto places = places_.find(function->name); places != places_.end())
    layout.places = places->second;
  order_.push_back(function);
  return absl::OkStatus();
}

absl::Status ProgramBuilder::LayOutParameters(FunctionLayout* layout) {
  const Function& function = *layout->function;
  if (function.is_entry) {
    uint64_t offset = 0;
    for (const Parameter& parameter : function.parameters) {
      offset = RoundUp(offset, static_cast<uint64_t>(std::max<int64_t>(1, parameter.align)));
      if (parameter.bytes > kParameterBytesMax - static_cast<int64_t>(offset)) {
        return absl::ResourceExhaustedError(
            absl::StrCat("kernel ", function.name, " takes more than ", kParameterBytesMax,
                         " bytes of parameters; pass a pointer instead"));
      }
      layout->params[parameter.name] = {true, static_cast<uint32_t>(offset), parameter.bytes};
      program_->parameters.push_back({parameter.name, parameter.type, static_cast<uint32_t>(offset),
                                      static_cast<uint32_t>(parameter.bytes)});
      offset += static_cast<uint64_t>(parameter.bytes);
    }
    program_->parameter_bytes = static_cast<uint32_t>(offset);
  } else {
    layout->return_address = Allocate(4);
    for (const std::vector<Parameter>* list : {&function.parameters, &function.returns}) {
      for (const Parameter& parameter : *list) {
        if (parameter.is_register) {
          return absl::UnimplementedError(
              absl::StrCat("function ", function.name, " takes parameters in registers"));
        }
        layout->params[parameter.name] = {false, Allocate(parameter.bytes), parameter.bytes};
      }
    }
  }
  for (const Variable& variable : function.variables) {
    if (variable.space != Space::kParam) continue;
    layout->params[variable.name] = {false, Allocate(variable.bytes), variable.bytes};
  }
  return CheckRegisterBytes();
}

absl::Status ProgramBuilder::LayOutShared() {
  std::map<std::string_view, const Variable*> candidates;
  for (const Variable& v : module_.variables) {
    if (v.space == Space::kShared) candidates[v.name] = &v;
  }
  for (const Function* function : order_) {
    for (const Variable& v : function->variables) {
      if (v.space == Space::kShared) candidates[v.name] = &v;
    }
  }
  // Only what the kernel names.
  std::vector<const Variable*> used;
  std::set<const Variable*> seen;
  const auto note = [&](const std::string& symbol) {
    const auto found = candidates.find(symbol);
    if (found != candidates.end() && seen.insert(found->second).second)
      used.push_back(found->second);
  };
  for (const Function* function : order_) {
    for (const Instruction& instruction : function->instructions) {
      for (const Operand& operand : instruction.operands) {
        note(operand.symbol);
        for (const Operand& element : operand.elements) note(element.symbol);
      }
    }
  }
  uint64_t offset = 0;
  uint32_t dynamic_align = 16;
  for (const Variable* v : used) {
    const auto align = static_cast<uint64_t>(std::max<int64_t>(1, v->align));
    if (v->bytes == 0) {
      dynamic_align = std::max(dynamic_align, static_cast<uint32_t>(align));
      continue;
    }
    offset = RoundUp(offset, align);
    shared_[v->name] = static_cast<uint32_t>(kSharedBase + offset);
    program_->shared_variables.push_back(
        {v->name, static_cast<uint32_t>(offset), static_cast<uint32_t>(v->bytes)});
    offset += static_cast<uint64_t>(v->bytes);
    if (offset > (uint64_t{1} << 30))
      return absl::ResourceExhaustedError("static shared memory of more than 1 GiB");
  }
  program_->shared_bytes = static_cast<uint32_t>(offset);
  program_->dynamic_shared_align = dynamic_align;
  for (const Variable* v : used) {
    if (v->bytes == 0) shared_[v->name] = kSharedBase + RoundUp(offset, dynamic_align);
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::LayOutLocals(FunctionLayout* layout) {
  for (const Variable& v : layout->function->variables) {
    if (v.space != Space::kLocal) continue;
    const uint32_t offset =
        RoundUp(program_->local_bytes, static_cast<uint64_t>(std::max<int64_t>(1, v.align)));
    if (v.bytes > int64_t{kLocalBytesMax} - offset) {
      return absl::ResourceExhaustedError(absl::StrCat("kernel ", program_->kernel,
                                                       " needs more than ", kLocalBytesMax / 1024,
                                                       " KiB of local memory a thread"));
    }
    layout->locals[v.name] = kLocalBase + offset;
    program_->local_bytes = offset + static_cast<uint32_t>(v.bytes);
  }
  return absl::OkStatus();
}

void ProgramBuilder::Emit(Op op) {
  const auto index = static_cast<uint32_t>(program_->ops.size());
  for (LabelFixup& fixup : pending_labels_) {
    fixup.op = index;
    label_fixups_.push_back(std::move(fixup));
  }
  pending_labels_.clear();
  info_.location = instruction_->location;
  info_.opcode = instruction_->opcode;
  program_->ops.push_back(op);
  program_->info.push_back(info_);
  info_ = {};
}

absl::Status ProgramBuilder::DecodeInstruction(const Instruction& instruction) {
  if (instruction.mnemonic == "call") return DecodeCall(instruction);
  const assay::emulator::DecodeFunction decode = table_.Find(instruction.mnemonic);
  if (decode == nullptr) return absl::UnimplementedError("the operation is not known");
  Op op;
  if (instruction.guard >= 0) {
    ASSAY_ASSIGN_OR_RETURN(op.guard, RegisterOffset(instruction.guard));
    op.guard_negated = instruction.guard_negated;
  }
  ASSAY_RETURN_IF_ERROR(decode(instruction, this, &op));
  ASSAY_RETURN_IF_ERROR(CheckRegisterBytes());
  Emit(op);
  return absl::OkStatus();
}

absl::Status ProgramBuilder::DecodeFunction(FunctionLayout* layout) {
  current_ = layout;
  layout->first_op = static_cast<uint32_t>(program_->ops.size());
  for (const Instruction& instruction : layout->function->instructions) {
    instruction_ = &instruction;
    layout->op_of_instruction.push_back(static_cast<uint32_t>(program_->ops.size()));
    if (const absl::Status status = DecodeInstruction(instruction); !status.ok())
      return AddContext(status, instruction);
    if (program_->ops.size() > kOpsMax)
      return absl::ResourceExhaustedError(absl::StrCat("more than ", kOpsMax, " operations"));
  }
  // What runs off the end returns.
  Instruction end;
  end.mnemonic = end.opcode = "ret";
  end.location = layout->function->location;
  if (!layout->function->instructions.empty())
    end.location = layout->function->instructions.back().location;
  instruction_ = &end;
  layout->op_of_instruction.push_back(static_cast<uint32_t>(program_->ops.size()));
  ASSAY_RETURN_IF_ERROR(DecodeInstruction(end));
  layout->last_op = static_cast<uint32_t>(program_->ops.size());
  return absl::OkStatus();
}

// Copies between the caller's param space and the callee's, or constants and registers of the
// caller.
absl::Status ProgramBuilder::CopyParams(const Operand* operands, const FunctionLayout& callee,
                                        const std::vector<Parameter>& parameters,
                                        bool into_callee) {
  const size_t count = operands == nullptr ? 0 : operands->elements.size();
  if (count != parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("passes ", count, " values to a function of ", parameters.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = operands->elements[i];
    const ParamPlace inside = callee.params.find(parameters[i].name)->second;
    if (operand.kind != Operand::Kind::kSymbol)
      return absl::UnimplementedError("passes a register or constant to a function");
    ASSAY_ASSIGN_OR_RETURN(const ParamPlace outside, FindParam(operand.symbol));
    if (outside.is_kernel_parameter || outside.bytes != inside.bytes) {
      return absl::InvalidArgumentError(absl::StrCat("passes ", operand.symbol, " of ",
                                                     outside.bytes, " bytes as ",
                                                     parameters[i].name, " of ", inside.bytes));
    }
    const ParamPlace& from = into_callee ? outside : inside;
    const ParamPlace& to = into_callee ? inside : outside;
    Op op;
    op.handler = CopyParamSpace;
    op.dst = to.offset;
    op.a = from.offset;
    op.data = static_cast<uint64_t>(from.bytes);
    Emit(op);
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::CallBuiltin(const Instruction& instruction, std::string_view name,
                                         const Operand* results, const Operand* arguments) {
  const Handler handler = FindBuiltin(name);
  if (handler == nullptr)
    return absl::UnimplementedError(absl::StrCat("function ", std::string(name), " has no body"));
  std::vector<uint32_t> places;
  for (const Operand* list : {arguments, results}) {
    if (list == nullptr) continue;
    for (const Operand& operand : list->elements) {
      ASSAY_ASSIGN_OR_RETURN(const ParamPlace place, FindParam(operand.symbol));
      if (place.is_kernel_parameter) {
        return absl::InvalidArgumentError(
            absl::StrCat("passes ", operand.symbol, ", which is a parameter of the kernel"));
      }
      places.push_back(place.offset);
      places.push_back(static_cast<uint32_t>(place.bytes));
    }
  }
  const size_t count = arguments == nullptr ? 0 : arguments->elements.size();
  if (count != BuiltinArguments(name)) {
    return absl::InvalidArgumentError(absl::StrCat("passes ", count, " values to ",
                                                   std::string(name), ", which takes ",
                                                   BuiltinArguments(name)));
  }
  if (results != nullptr && results->elements.size() > 1)
    return absl::InvalidArgumentError("returns more than one value");
  Op op;
  op.handler = handler;
  op.extra = static_cast<uint32_t>(count);
  op.list = AddList(places);
  op.list_size = static_cast<uint16_t>(places.size());
  Emit(op);
  return absl::OkStatus();
}

absl::Status ProgramBuilder::DecodeCall(const Instruction& instruction) {
  const Operand* name = nullptr;
  const Operand* lists[2] = {nullptr, nullptr};  // before and after the name
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::kVector) {
      lists[name == nullptr ? 0 : 1] = &operand;
    } else if (name == nullptr) {
      name = &operand;
    }
  }
  if (name == nullptr) return absl::InvalidArgumentError("names no function");
  if (name->kind != Operand::Kind::kSymbol)
    return absl::UnimplementedError("calls through a pointer");
  const auto first = program_->ops.size();
  const Function* const callee = module_.FindFunction(name->symbol);
  if (callee == nullptr || callee->is_declaration) {
    ASSAY_RETURN_IF_ERROR(CallBuiltin(instruction, name->symbol, lists[0], lists[1]));
  } else {
    const FunctionLayout& layout = functions_[callee->name];
    ASSAY_RETURN_IF_ERROR(CopyParams(lists[1], layout, callee->parameters, true));
    Op op;
    op.handler = CallFunction;
    op.dst = layout.return_address;
    call_fixups_.push_back({static_cast<uint32_t>(program_->ops.size()), &layout});
    Emit(op);
    ASSAY_RETURN_IF_ERROR(CopyParams(lists[0], layout, callee->returns, false));
  }
  if (instruction.guard >= 0) {
    ASSAY_ASSIGN_OR_RETURN(const uint32_t guard, RegisterOffset(instruction.guard));
    for (size_t i = first; i < program_->ops.size(); ++i) {
      program_->ops[i].guard = guard;
      program_->ops[i].guard_negated = instruction.guard_negated;
    }
  }
  return absl::OkStatus();
}

void ProgramBuilder::MarkBlockStarts(FunctionLayout* layout) const {
  const std::vector<uint32_t>& ops = layout->op_of_instruction;
  layout->starts_block.assign(ops.size() + 1, false);
  for (size_t i = 0; i < ops.size(); ++i) {
    const uint32_t end = i + 1 < ops.size() ? ops[i + 1] : layout->last_op;
    for (uint32_t op = ops[i]; op < end; ++op) {
      if (!program_->ops[op].leader) continue;
      layout->starts_block[i] = true;
      // A call is several operations.
      if (op > ops[i]) layout->starts_block[i + 1] = true;
    }
  }
}

void ProgramBuilder::Finish() {
  std::map<uint32_t, const LabelFixup*> branches;
  for (const LabelFixup& fixup : label_fixups_) {
    Op& op = program_->ops[fixup.op];
    branches[fixup.op] = &fixup;
    for (size_t i = 0; i < fixup.instructions.size(); ++i) {
      const uint32_t target =
          fixup.layout->op_of_instruction[static_cast<size_t>(fixup.instructions[i])];
      if (fixup.is_list) {
        program_->lists[op.list + i] = target;
      } else {
        op.data = target;
      }
    }
  }
  std::set<uint32_t> calls;
  for (const CallFixup& fixup : call_fixups_) {
    program_->ops[fixup.op].data = fixup.callee->first_op;
    calls.insert(fixup.op);
  }
  uint32_t priority = 0;
  for (const Function* function : order_) {
    FunctionLayout& layout = functions_[function->name];
    std::vector<Successors> successors(layout.last_op - layout.first_op);
    for (uint32_t i = layout.first_op; i < layout.last_op; ++i) {
      Successors& s = successors[i - layout.first_op];
      const std::string& opcode = program_->info[i].opcode;
      const bool guarded = program_->ops[i].guard != kNoRegister;
      if (const auto branch = branches.find(i); branch != branches.end()) {
        for (const int target : branch->second->instructions) {
          s.targets.push_back(layout.op_of_instruction[static_cast<size_t>(target)]);
        }
        s.falls_through = guarded;
      } else if (opcode == "ret" || opcode == "exit" || opcode == "ret.uni" || opcode == "trap") {
        s.falls_through = guarded;
      } else if (calls.count(i) != 0) {
        s.targets.push_back(i + 1);  // a block ends here
      }
    }
    priority = OrderBlocks(layout.first_op, layout.last_op, successors, priority, program_.get());
    MarkBlockStarts(&layout);
  }
  program_->register_bytes = static_cast<uint32_t>(register_bytes_);
}

ProgramBuilder::Places ProgramBuilder::FindPlaces() const {
  Places places;
  for (const auto& [name, layout] : functions_) {
    std::vector<int> bytes;
    for (const Register& reg : layout.function->registers)
      bytes.push_back(reg.type == Type::kPred ? 0 : std::max(2, TypeBytes(reg.type)));
    places[name] = ShareRegisters(layout.uses, layout.starts_block, bytes);
  }
  return places;
}

absl::StatusOr<std::unique_ptr<Program>> ProgramBuilder::Build(std::string_view kernel,
                                                               int mma_arch) {
  const Function* const entry = module_.FindFunction(kernel);
  if (entry == nullptr || !entry->is_entry) {
    std::vector<std::string> names;
    for (const Function& f : module_.functions) {
      if (f.is_entry) names.push_back(f.name);
    }
    return absl::NotFoundError(absl::StrCat("the module has no kernel ", std::string(kernel),
                                            "; it has ",
                                            names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  program_->kernel = entry->name;
  program_->mma_arch = mma_arch;
  for (const auto& [number, name] : module_.files) {
    if (number < 0 || number > 4096) continue;
    program_->files.resize(
        std::max<size_t>(program_->files.size(), static_cast<size_t>(number) + 1));
    program_->files[static_cast<size_t>(number)] = name;
  }
  std::vector<const Function*> path;
  ASSAY_RETURN_IF_ERROR(OrderFunctions(entry, &path));
  for (const Function* function : order_) {
    FunctionLayout& layout = functions_[function->name];
    ASSAY_RETURN_IF_ERROR(LayOutParameters(&layout));
    ASSAY_RETURN_IF_ERROR(LayOutLocals(&layout));
  }
  ASSAY_RETURN_IF_ERROR(LayOutShared());
  for (const Function* function : order_)
    ASSAY_RETURN_IF_ERROR(DecodeFunction(&functions_[function->name]));
  Finish();
  program_->entry = functions_[entry->name].first_op;
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    program_->required_threads[i] = static_cast<uint32_t>(entry->required_threads[i]);
    threads = std::min<int64_t>(threads * std::max<int64_t>(1, entry->max_threads[i]), 1024);
  }
  if (entry->max_threads[0] > 0) program_->max_threads = static_cast<uint32_t>(threads);
  return std::move(program_);
}

absl::StatusOr<std::unique_ptr<Program>> BuildProgram(const Module& module, std::string_view kernel,
                                                      const OpTable& table,
                                                      const VariableResolver& resolve,
                                                      int mma_arch) {
  ProgramBuilder first(module, table, resolve);
  ASSAY_RETURN_IF_ERROR(first.Build(kernel, mma_arch).status());
  ProgramBuilder second(module, table, resolve);
  second.SetPlaces(first.FindPlaces());
  return second.Build(kernel, mma_arch);
}

}  // namespace assay::emulator
