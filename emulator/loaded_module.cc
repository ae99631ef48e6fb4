#include <cstring>
#include <map>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "emulator/engine.h"
#include "emulator/program/builder.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

// Variables get their place when a kernel, or the host, first names them: headers bring thousands
// that nobody uses.
struct LoadedModule::State {
  Module module;
  DeviceMemory* memory = nullptr;
  int mma_arch = 80;
  absl::Mutex mutex;
  std::map<std::string, std::unique_ptr<Program>, std::less<>> programs ABSL_GUARDED_BY(mutex);
  std::map<std::string, VariableAddress, std::less<>> variables ABSL_GUARDED_BY(mutex);

  absl::StatusOr<VariableAddress> Place(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status WriteImage(const emulator::Variable& variable, uint64_t address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

absl::StatusOr<LoadedModule::VariableAddress> LoadedModule::State::Place(std::string_view name) {
  if (const auto found = variables.find(name); found != variables.end()) return found->second;
  const emulator::Variable* const variable = module.FindVariable(name);
  if (variable == nullptr ||
      (variable->space != Space::kGlobal && variable->space != Space::kConst)) {
    return absl::NotFoundError(
        absl::StrCat("the module has no global or const variable ", std::string(name)));
  }
  if (variable->is_extern || variable->bytes <= 0) {
    return absl::UnimplementedError(
        absl::StrCat("variable ", std::string(name), " is defined in another module"));
  }
  VariableAddress place;
  place.bytes = static_cast<uint64_t>(variable->bytes);
  ASSAY_ASSIGN_OR_RETURN(place.address, memory->Allocate(place.bytes, std::string(name)));
  variables[std::string(name)] = place;
  ASSAY_RETURN_IF_ERROR(WriteImage(*variable, place.address));
  if (variable->space == Space::kConst)
    ASSAY_RETURN_IF_ERROR(memory->SetRole(place.address, Role::kConstant));
  return place;
}

absl::Status LoadedModule::State::WriteImage(const emulator::Variable& variable, uint64_t address) {
  const auto bytes = static_cast<uint64_t>(variable.bytes);
  ASSAY_ASSIGN_OR_RETURN(std::byte* const host, memory->Range(address, bytes));
  std::memset(host, 0, bytes);
  std::memcpy(host, variable.init.data(), std::min<uint64_t>(bytes, variable.init.size()));
  ASSAY_RETURN_IF_ERROR(memory->SetInitialized(address, bytes, true));
  for (const Relocation& relocation : variable.relocations) {
    ASSAY_ASSIGN_OR_RETURN(const VariableAddress target, Place(relocation.symbol));
    const uint64_t value = target.address + static_cast<uint64_t>(relocation.addend);
    if (relocation.offset < 0 || relocation.offset + 8 > variable.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the initial value of ", variable.name, " passes its end"));
    }
    std::memcpy(host + relocation.offset, &value, sizeof(value));
  }
  return absl::OkStatus();
}

LoadedModule::LoadedModule(std::unique_ptr<State> state) : state_(std::move(state)) {}

LoadedModule::~LoadedModule() {
  const absl::MutexLock lock(&state_->mutex);
  for (const auto& [name, place] : state_->variables)
    state_->memory->Free(place.address).IgnoreError();
}

absl::StatusOr<std::unique_ptr<LoadedModule>> LoadedModule::Load(std::string_view ptx,
                                                                 DeviceMemory* memory,
                                                                 int mma_arch) {
  auto state = std::make_unique<State>();
  ASSAY_ASSIGN_OR_RETURN(state->module, ParseModule(ptx));
  state->memory = memory;
  state->mma_arch = mma_arch;
  return std::unique_ptr<LoadedModule>(new LoadedModule(std::move(state)));
}

absl::StatusOr<const Program*> LoadedModule::Kernel(std::string_view name) {
  const absl::MutexLock lock(&state_->mutex);
  if (const auto found = state_->programs.find(name); found != state_->programs.end())
    return found->second.get();
  const VariableResolver resolve = [this](std::string_view variable) -> absl::StatusOr<uint64_t> {
    state_->mutex.AssertHeld();
    ASSAY_ASSIGN_OR_RETURN(const VariableAddress place, state_->Place(variable));
    return place.address;
  };
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Program> program,
                         BuildProgram(state_->module, name, AllOps(), resolve, state_->mma_arch));
  return (state_->programs[std::string(name)] = std::move(program)).get();
}

absl::StatusOr<LoadedModule::VariableAddress> LoadedModule::Variable(std::string_view name) {
  const absl::MutexLock lock(&state_->mutex);
  return state_->Place(name);
}

absl::Status LoadedModule::ResetVariables() {
  const absl::MutexLock lock(&state_->mutex);
  for (const auto& [name, place] : state_->variables) {
    ASSAY_RETURN_IF_ERROR(state_->WriteImage(*state_->module.FindVariable(name), place.address));
  }
  return absl::OkStatus();
}

const Module& LoadedModule::module() const { return state_->module; }

}  // namespace assay::emulator
