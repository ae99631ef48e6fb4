// Modules, libraries and the kernels in them.
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/strings.h"
#include "emulator/driver/call.h"
#include "emulator/driver/modules.h"
#include "emulator/driver/results.h"
#include "emulator/ptx/module.h"

namespace assay::emulator::exported {
namespace {

CUresult NoRoom(State& state) {
  return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
}

CUresult NoName(State& state) { return state.Fail(CUDA_ERROR_INVALID_VALUE, "nothing is named"); }

// body(module) for a module of the current context.
template <typename Body>
CUresult CallForModule(CUmodule module, Body&& body) {
  return CallInContext([&](State& state, ContextObject& context) {
    ModuleObject* const object = state.modules.Find(module);
    if (object == nullptr || object->context != &context) {
      return state.Fail(CUDA_ERROR_INVALID_HANDLE, "no such module in the current context");
    }
    return body(state, *object);
  });
}

// body(state, library)
template <typename Body>
CUresult CallForLibrary(CUlibrary library, Body&& body) {
  return Call([&](State& state) {
    LibraryObject* const object = state.libraries.Find(library);
    if (object == nullptr) return state.Fail(CUDA_ERROR_INVALID_HANDLE, "no such library");
    return body(state, *object);
  });
}

CUresult ReadImageFile(State& state, const char* path, std::string* text) {
  if (path == nullptr) return NoName(state);
  absl::StatusOr<std::string> read =
      ReadFile(path, static_cast<size_t>(ParseLimits().text_bytes_max));
  if (!read.ok()) return state.Fail(CUDA_ERROR_FILE_NOT_FOUND, Sv(read.status().message()));
  *text = *std::move(read);
  return CUDA_SUCCESS;
}

bool IsKernel(const Function& function) { return function.is_entry && !function.is_declaration; }

CUresult AddLibrary(State& state, const void* image, unsigned int jit_count,
                    const CUjit_option* jit_options, void** jit_values, CUlibrary* library) {
  if (library == nullptr) return NoRoom(state);
  if (state.libraries.size() >= kObjectsMax) {
    return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too many libraries; unload some");
  }
  std::string_view ptx;
  JitLogs logs;
  CUresult result = logs.Read(state, jit_count, jit_options, jit_values);
  if (result == CUDA_SUCCESS) result = ReadImage(state, image, &ptx);
  if (result != CUDA_SUCCESS) return result;
  const absl::StatusOr<Module> module = ParseModule(ptx);
  if (!module.ok()) {
    logs.WriteError(Sv(module.status().message()));
    return state.Fail(absl::IsInvalidArgument(module.status()) ? CUDA_ERROR_INVALID_PTX
                                                               : ResultOfStatus(module.status()),
                      Sv(module.status().message()));
  }
  auto object = std::make_unique<LibraryObject>();
  object->ptx = std::string(ptx);
  for (const Function& function : module->functions) {
    if (IsKernel(function)) object->kernel_names.insert(function.name);
  }
  *library = state.NextHandle<CUlibrary>();
  state.libraries.Add(*library, std::move(object));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (module == nullptr) return NoRoom(state);
    JitLogs logs;
    std::string_view ptx;
    CUresult result = logs.Read(state, count, options, values);
    if (result != CUDA_SUCCESS) return result;
    result = ReadImage(state, image, &ptx);
    if (result != CUDA_SUCCESS) {
      logs.WriteError(state.report.last_error);
      return result;
    }
    return LoadModule(state, context, ptx, &logs, module);
  });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (module == nullptr) return NoRoom(state);
    std::string text;
    CUresult result = ReadImageFile(state, path, &text);
    std::string_view ptx;
    if (result == CUDA_SUCCESS) result = ReadImage(state, text.c_str(), &ptx);
    if (result != CUDA_SUCCESS) return result;
    JitLogs logs;
    return LoadModule(state, context, ptx, &logs, module);
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return CallForModule(module, [&](State& state, ModuleObject& object) {
    if (object.library != nullptr) {
      return state.Fail(CUDA_ERROR_NOT_PERMITTED,
                        "the module belongs to a library: use cuLibraryUnload");
    }
    state.DestroyModule(module);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return CallForModule(module, [&](State& state, ModuleObject& object) {
    if (function == nullptr) return NoRoom(state);
    if (name == nullptr) return NoName(state);
    return GetFunction(state, object, name, function);
  });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule module) {
  return CallForModule(module, [&](State& state, ModuleObject& object) {
    if (count == nullptr) return NoRoom(state);
    *count = 0;
    for (const Function& function : object.loaded->module().functions) *count += IsKernel(function);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module) {
  return CallForModule(module, [&](State& state, ModuleObject& object) {
    if (functions == nullptr) return NoRoom(state);
    for (const Function& function : object.loaded->module().functions) {
      if (!IsKernel(function)) continue;
      if (count == 0) break;
      const CUresult result = GetFunction(state, object, function.name, functions);
      if (result != CUDA_SUCCESS) return result;
      ++functions;
      --count;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                              const char* name) {
  return CallForModule(module, [&](State& state, ModuleObject& object) {
    return GetGlobal(state, object, name, address, bytes);
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return Call([&](State& state) {
    if (mode == nullptr) return NoRoom(state);
    *mode = cuda::CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options,
                           void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                           void** values, unsigned int count) {
  return Call([&](State& state) {
    return AddLibrary(state, image, jit_count, jit_options, jit_values, library);
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                               void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                               void** values, unsigned int count) {
  return Call([&](State& state) {
    std::string text;
    const CUresult result = ReadImageFile(state, path, &text);
    if (result != CUDA_SUCCESS) return result;
    return AddLibrary(state, text.c_str(), jit_count, jit_options, jit_values, library);
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return CallForLibrary(library, [&](State& state, LibraryObject& object) {
    for (const auto& [name, kernel] : object.kernels) state.kernels.Remove(kernel);
    state.functions.RemoveIf([&](const FunctionObject& f) { return f.module->library == library; });
    state.modules.RemoveIf([&](const ModuleObject& m) {
      if (m.library != library) return false;
      m.context->libraries.erase(library);
      return true;
    });
    state.libraries.Remove(library);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return CallForLibrary(library, [&](State& state, LibraryObject& object) {
    if (kernel == nullptr) return NoRoom(state);
    if (name == nullptr) return NoName(state);
    if (!object.kernel_names.contains(name)) {
      return state.Fail(CUDA_ERROR_NOT_FOUND,
                        "the library has no kernel " + std::string(name).substr(0, 256));
    }
    CUkernel& handle = object.kernels[name];
    if (handle == nullptr) {
      handle = state.NextHandle<CUkernel>();
      auto added = std::make_unique<KernelObject>();
      added->library = library;
      added->name = name;
      state.kernels.Add(handle, std::move(added));
    }
    *kernel = handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  return CallForLibrary(library, [&](State& state, LibraryObject& object) {
    if (count == nullptr) return NoRoom(state);
    *count = static_cast<unsigned int>(object.kernel_names.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (module == nullptr) return NoRoom(state);
    ModuleObject* object = nullptr;
    const CUresult result = LibraryModule(state, context, library, &object);
    if (result == CUDA_SUCCESS) *module = object->handle;
    return result;
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                            const char* name) {
  return CallInContext([&](State& state, ContextObject& context) {
    ModuleObject* object = nullptr;
    const CUresult result = LibraryModule(state, context, library, &object);
    if (result != CUDA_SUCCESS) return result;
    return GetGlobal(state, *object, name, address, bytes);
  });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (function == nullptr) return NoRoom(state);
    return KernelFunction(state, context, kernel, function);
  });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return Call([&](State& state) {
    if (name == nullptr) return NoRoom(state);
    const KernelObject* const object = state.kernels.Find(kernel);
    if (object == nullptr) return state.Fail(CUDA_ERROR_INVALID_HANDLE, "no such kernel");
    *name = object->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  CUfunction function = nullptr;
  const CUresult result = cuKernelGetFunction(&function, kernel);
  return result == CUDA_SUCCESS ? cuFuncGetParamInfo(function, index, offset, bytes) : result;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  CUfunction function = nullptr;
  const CUresult result = cuKernelGetFunction(&function, kernel);
  return result == CUDA_SUCCESS ? cuFuncGetAttribute(value, attribute, function) : result;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  CUfunction function = nullptr;
  const CUresult result = cuKernelGetFunction(&function, kernel);
  return result == CUDA_SUCCESS ? cuFuncSetAttribute(function, attribute, value) : result;
}

}  // namespace assay::emulator::exported
