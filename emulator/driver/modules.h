// Loading PTX into a context and finding kernels in it: what the functions for modules, libraries
// and kernels share.
//
// All of it is for the holder of State::mutex.
#ifndef ASSAY_EMULATOR_DRIVER_MODULES_H_
#define ASSAY_EMULATOR_DRIVER_MODULES_H_

#include <cstddef>
#include <string_view>

#include "base/cuda/driver_abi.h"
#include "emulator/driver/state.h"

namespace assay::emulator {

// The log buffers among the options of cuModuleLoadDataEx; the other options change nothing that an
// emulated kernel does.
class JitLogs {
 public:
  // INVALID_VALUE when options are announced and absent, or one has an unknown number.
  cuda::CUresult Read(State& state, unsigned int count, const cuda::CUjit_option* options,
                      void** values);
  // Fill the caller's buffers, cut to their size, and write the bytes used where the sizes stood.
  void WriteError(std::string_view text);
  void WriteInfo(std::string_view text);

 private:
  struct Log {
    char* buffer = nullptr;
    size_t bytes = 0;
    void** size = nullptr;  // gets the number of bytes used
  };
  static void Write(const Log& log, std::string_view text);
  Log info_;
  Log error_;
};

// The PTX that begins at `image` and ends with a zero byte. INVALID_IMAGE for one without an end,
// NO_BINARY_FOR_GPU for machine code.
cuda::CUresult ReadImage(State& state, const void* image, std::string_view* ptx);

// Parses `ptx` and loads it into `context`.
cuda::CUresult LoadModule(State& state, ContextObject& context, std::string_view ptx, JitLogs* logs,
                          cuda::CUmodule* module);

// The kernel `name` of a module, decoded.
cuda::CUresult GetFunction(State& state, ModuleObject& module, std::string_view name,
                           cuda::CUfunction* function);

cuda::CUresult GetGlobal(State& state, ModuleObject& module, const char* name,
                         cuda::CUdeviceptr* address, size_t* bytes);

// The library's module in `context`; loads it at the first call.
cuda::CUresult LibraryModule(State& state, ContextObject& context, cuda::CUlibrary library,
                             ModuleObject** module);

// The function of a library's kernel in `context`.
cuda::CUresult KernelFunction(State& state, ContextObject& context, cuda::CUkernel kernel,
                              cuda::CUfunction* function);

// What `handle` names in `context`: a function, or a kernel of a library, which CUDA allows in its
// place.
cuda::CUresult ResolveFunction(State& state, ContextObject& context, cuda::CUfunction handle,
                               FunctionObject** function);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_MODULES_H_
