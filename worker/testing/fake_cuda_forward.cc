// The functions that the fake driver leaves to the emulated one: each jumps through a pointer that
// is filled when the library is loaded. Weak, so that fake_cuda.cc replaces those that it changes.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/cuda/driver_functions.h"

// x86-64 only, as the emulated driver is.
#define ASSAY_FORWARD(name, symbol, since, parameters)                       \
  extern "C" {                                                               \
  __attribute__((visibility("hidden"))) void* assay_real_##symbol = nullptr; \
  }                                                                          \
  asm(".text\n.weak " #symbol "\n.type " #symbol ",@function\n" #symbol      \
      ":\n"                                                                  \
      "  jmp *assay_real_" #symbol "(%rip)\n.size " #symbol ", .-" #symbol "\n");
ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_FORWARD)
ASSAY_CUDA_OPTIONAL_FUNCTIONS(ASSAY_FORWARD)
#undef ASSAY_FORWARD

namespace assay {

void* FakeCudaEmulator();

// The emulated driver beside the program that tests run: ../bin from this library.
void* FakeCudaEmulator() {
  static void* const library = [] {
    Dl_info self;
    void* opened = nullptr;
    if (dladdr(reinterpret_cast<void*>(&FakeCudaEmulator), &self) != 0) {
      const std::string path(self.dli_fname);
      const std::string folder = path.substr(0, path.rfind('/'));
      opened =
          dlopen((folder + "/../bin/libassay_emulated_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (opened == nullptr) {
      std::fprintf(stderr, "the fake CUDA driver finds no emulated one: %s\n", dlerror());
      std::abort();
    }
    return opened;
  }();
  return library;
}

namespace {

__attribute__((constructor)) void FillPointers() {
  void* const emulator = FakeCudaEmulator();
#define ASSAY_FILL(name, symbol, since, parameters) assay_real_##symbol = dlsym(emulator, #symbol);
  ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_FILL)
  ASSAY_CUDA_OPTIONAL_FUNCTIONS(ASSAY_FILL)
#undef ASSAY_FILL
}

}  // namespace
}  // namespace assay
