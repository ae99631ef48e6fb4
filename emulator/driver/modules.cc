#include "emulator/driver/modules.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "emulator/driver/results.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

using cuda::CUresult;

namespace {

// First bytes of containers of machine code.
constexpr std::string_view kElfMagic = "\x7f\x45\x4c\x46";
constexpr std::string_view kFatbinWrapperMagic = "\xb1\x43\x62\x46";
constexpr std::string_view kFatbinMagic = "\x50\xed\x55\xba";

bool BeginsWith(const char* image, std::string_view magic) {
  // One byte at a time: a text may end before.
  for (size_t i = 0; i < magic.size(); ++i) {
    if (image[i] != magic[i]) return false;
  }
  return true;
}

CUresult CheckVersionAndTarget(State& state, const Module& module) {
  if (module.version_major > kPtxVersionMajor ||
      (module.version_major == kPtxVersionMajor && module.version_minor > kPtxVersionMinor)) {
    return state.Fail(cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                      absl::StrCat("PTX of version ", module.version_major, ".",
                                   module.version_minor, "; the emulated driver reads up to ",
                                   kPtxVersionMajor, ".", kPtxVersionMinor));
  }
  if (!RunsTarget(state.model(), module.target)) {
    return state.Fail(
        cuda::CUDA_ERROR_INVALID_PTX,
        absl::StrCat("PTX for ", module.target, " does not run on the emulated sm_",
                     state.model().arch, "; compile for it or configure a later arch"));
  }
  return cuda::CUDA_SUCCESS;
}

CUresult ResultOfParse(const absl::Status& status) {
  // The parser's INVALID_ARGUMENT is about the text, not about an argument of the call.
  return absl::IsInvalidArgument(status) ? cuda::CUDA_ERROR_INVALID_PTX : ResultOfStatus(status);
}

}  // namespace

CUresult JitLogs::Read(State& state, unsigned int count, const cuda::CUjit_option* options,
                       void** values) {
  if (count == 0) return cuda::CUDA_SUCCESS;
  if (options == nullptr || values == nullptr) {
    return state.Fail(cuda::CUDA_ERROR_INVALID_VALUE, "options are announced but absent");
  }
  for (unsigned int i = 0; i < count; ++i) {
    const int option = options[i];
    if (option < 0 || option >= cuda::CU_JIT_NUM_OPTIONS) {
      return state.Fail(cuda::CUDA_ERROR_INVALID_VALUE,
                        absl::StrCat("no option ", option, " of loading a module"));
    }
    const auto number = static_cast<size_t>(reinterpret_cast<uintptr_t>(values[i]) & 0xffffffffu);
    switch (option) {
      case cuda::CU_JIT_INFO_LOG_BUFFER:
        info_.buffer = static_cast<char*>(values[i]);
        break;
      case cuda::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.bytes = number;
        info_.size = &values[i];
        break;
      case cuda::CU_JIT_ERROR_LOG_BUFFER:
        error_.buffer = static_cast<char*>(values[i]);
        break;
      case cuda::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.bytes = number;
        error_.size = &values[i];
        break;
      default:
        break;
    }
  }
  Write(info_, "");
  Write(error_, "");
  return cuda::CUDA_SUCCESS;
}

void JitLogs::Write(const Log& log, std::string_view text) {
  size_t used = 0;
  if (log.buffer != nullptr && log.bytes > 0) {
    used = std::min(text.size(), log.bytes - 1);
    std::memcpy(log.buffer, text.data(), used);
    log.buffer[used] = 0;
  }
  if (log.size != nullptr) *log.size = reinterpret_cast<void*>(static_cast<uintptr_t>(used));
}

void JitLogs::WriteError(std::string_view text) { Write(error_, text); }

void JitLogs::WriteInfo(std::string_view text) { Write(info_, text); }

CUresult ReadImage(State& state, const void* image, std::string_view* ptx) {
  if (image == nullptr) return state.Fail(cuda::CUDA_ERROR_INVALID_VALUE, "no module image");
  const char* const text = static_cast<const char*>(image);
  if (BeginsWith(text, kElfMagic)) {
    return state.Fail(cuda::CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "the image is a cubin, machine code that cannot be emulated; load PTX");
  }
  if (BeginsWith(text, kFatbinWrapperMagic) || BeginsWith(text, kFatbinMagic)) {
    return state.Fail(cuda::CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "the image is a fat binary, which the emulated driver does not unpack; load "
                      "the PTX itself");
  }
  const size_t most = static_cast<size_t>(ParseLimits().text_bytes_max) + 1;
  const size_t bytes = strnlen(text, most);
  if (bytes == most) {
    return state.Fail(cuda::CUDA_ERROR_INVALID_IMAGE,
                      absl::StrCat("the image has no zero byte within ", most, " bytes"));
  }
  *ptx = std::string_view(text, bytes);
  return cuda::CUDA_SUCCESS;
}

CUresult LoadModule(State& state, ContextObject& context, std::string_view ptx, JitLogs* logs,
                    cuda::CUmodule* module) {
  if (state.modules.size() >= kObjectsMax) {
    return state.Fail(cuda::CUDA_ERROR_OUT_OF_MEMORY, "too many modules; unload some");
  }
  absl::StatusOr<std::unique_ptr<LoadedModule>> loaded =
      LoadedModule::Load(ptx, context.memory.get(), state.model().mma_arch);
  CUresult result = cuda::CUDA_SUCCESS;
  if (!loaded.ok()) {
    result = state.Fail(ResultOfParse(loaded.status()), Sv(loaded.status().message()));
  } else {
    result = CheckVersionAndTarget(state, (*loaded)->module());
  }
  if (result != cuda::CUDA_SUCCESS) {
    logs->WriteError(state.report.last_error);
    return result;
  }
  auto object = std::make_unique<ModuleObject>();
  object->handle = state.NextHandle<cuda::CUmodule>();
  object->context = &context;
  object->loaded = *std::move(loaded);
  logs->WriteInfo(absl::StrCat(
      "PTX ", object->loaded->module().version_major, ".", object->loaded->module().version_minor,
      " for ", object->loaded->module().target, ", to be emulated as sm_", state.model().arch));
  *module = object->handle;
  state.modules.Add(*module, std::move(object));
  return cuda::CUDA_SUCCESS;
}

CUresult GetFunction(State& state, ModuleObject& module, std::string_view name,
                     cuda::CUfunction* function) {
  const auto known = module.functions.find(name);
  if (known != module.functions.end()) {
    *function = known->second;
    return cuda::CUDA_SUCCESS;
  }
  const absl::StatusOr<const Program*> program = module.loaded->Kernel(name);
  if (!program.ok()) {
    return state.Fail(ResultOfParse(program.status()), Sv(program.status().message()));
  }
  if ((*program)->shared_bytes > kSharedBytesDefaultMax) {
    return state.Fail(cuda::CUDA_ERROR_INVALID_PTX,
                      absl::StrCat("kernel ", Av(name), " has ", (*program)->shared_bytes,
                                   " bytes of static shared memory; at most ",
                                   kSharedBytesDefaultMax, " can be"));
  }
  if ((*program)->parameter_bytes > kParameterBytesMax) {
    return state.Fail(
        cuda::CUDA_ERROR_INVALID_PTX,
        absl::StrCat("kernel ", Av(name), " has ", (*program)->parameter_bytes,
                     " bytes of parameters; at most ", kParameterBytesMax, " can be"));
  }
  auto object = std::make_unique<FunctionObject>();
  object->module = &module;
  object->name = std::string(name);
  object->program = *program;
  object->dynamic_shared_max = static_cast<int>(kSharedBytesDefaultMax - (*program)->shared_bytes);
  *function = state.NextHandle<cuda::CUfunction>();
  module.functions.emplace(object->name, *function);
  state.functions.Add(*function, std::move(object));
  return cuda::CUDA_SUCCESS;
}

CUresult GetGlobal(State& state, ModuleObject& module, const char* name, cuda::CUdeviceptr* address,
                   size_t* bytes) {
  if (name == nullptr) return state.Fail(cuda::CUDA_ERROR_INVALID_VALUE, "no variable is named");
  const absl::StatusOr<LoadedModule::VariableAddress> variable = module.loaded->Variable(name);
  if (!variable.ok()) return state.Fail(variable.status());
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->bytes;
  return cuda::CUDA_SUCCESS;
}

CUresult LibraryModule(State& state, ContextObject& context, cuda::CUlibrary library,
                       ModuleObject** module) {
  const LibraryObject* const object = state.libraries.Find(library);
  if (object == nullptr) return state.Fail(cuda::CUDA_ERROR_INVALID_HANDLE, "no such library");
  cuda::CUmodule& handle = context.libraries[library];
  if (handle == nullptr) {
    JitLogs logs;
    const CUresult result = LoadModule(state, context, object->ptx, &logs, &handle);
    if (result != cuda::CUDA_SUCCESS) {
      context.libraries.erase(library);
      return result;
    }
    state.modules.Find(handle)->library = library;
  }
  *module = state.modules.Find(handle);
  return cuda::CUDA_SUCCESS;
}

CUresult KernelFunction(State& state, ContextObject& context, cuda::CUkernel kernel,
                        cuda::CUfunction* function) {
  const KernelObject* const object = state.kernels.Find(kernel);
  if (object == nullptr) return state.Fail(cuda::CUDA_ERROR_INVALID_HANDLE, "no such kernel");
  ModuleObject* module = nullptr;
  const CUresult result = LibraryModule(state, context, object->library, &module);
  if (result != cuda::CUDA_SUCCESS) return result;
  return GetFunction(state, *module, object->name, function);
}

CUresult ResolveFunction(State& state, ContextObject& context, cuda::CUfunction handle,
                         FunctionObject** function) {
  const auto kernel = reinterpret_cast<cuda::CUkernel>(handle);
  if (state.kernels.Find(kernel) != nullptr) {
    const CUresult result = KernelFunction(state, context, kernel, &handle);
    if (result != cuda::CUDA_SUCCESS) return result;
  }
  FunctionObject* const object = state.functions.Find(handle);
  if (object == nullptr || object->module->context != &context) {
    return state.Fail(cuda::CUDA_ERROR_INVALID_HANDLE, "no such function in the current context");
  }
  *function = object;
  return cuda::CUDA_SUCCESS;
}

}  // namespace assay::emulator
