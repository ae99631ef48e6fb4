// Finding functions by name, as CUDA's own libraries do.
#include <string>
#include <string_view>

#include "emulator/driver/call.h"
#include "emulator/driver/device_model.h"

namespace assay::emulator::exported {
namespace {

struct Entry {
  std::string_view name;    // without version suffix
  std::string_view symbol;  // as exported
  int since;                // CUDA version that brought it
  void* function;
};

// Every function that is exported; several of one name have different `since`.
const Entry kEntries[] = {
#define ASSAY_CUDA_ENTRY(name, symbol, since, parameters) \
  {#name, #symbol, since, reinterpret_cast<void*>(&symbol)},
    ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_CUDA_ENTRY) ASSAY_CUDA_OPTIONAL_FUNCTIONS(ASSAY_CUDA_ENTRY)
        ASSAY_CUDA_OTHER_FUNCTIONS(ASSAY_CUDA_ENTRY)
#undef ASSAY_CUDA_ENTRY
};

// The latest form of `name` that a program built for `version` knows, or exactly the symbol.
const Entry* Find(std::string_view name, int version, bool* too_old) {
  const Entry* found = nullptr;
  *too_old = false;
  for (const Entry& entry : kEntries) {
    if (entry.name != name) continue;
    if (entry.since > version) {
      *too_old = true;
    } else if (found == nullptr || entry.since > found->since) {
      found = &entry;
    }
  }
  for (const Entry& entry : kEntries) {
    if (found == nullptr && entry.symbol == name && entry.symbol != entry.name) found = &entry;
  }
  return found;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  // Works before cuInit, which programs look up this way.
  return CallUninitialized([&](State& state) {
    if (symbol == nullptr || function == nullptr) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no name, or nowhere to write the function");
    }
    *function = nullptr;
    // There is no difference between the streams that the flags choose: all work is done at once.
    if (flags > cuda::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM || version < 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "unknown flags, or no version of CUDA");
    }
    bool too_old = false;
    const Entry* const entry = Find(symbol, version, &too_old);
    if (entry != nullptr) {
      *function = entry->function;
      if (status != nullptr) *status = cuda::CU_GET_PROC_ADDRESS_SUCCESS;
      return CUDA_SUCCESS;
    }
    if (status != nullptr) {
      *status = too_old ? cuda::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                        : cuda::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return state.Fail(CUDA_ERROR_NOT_FOUND,
                      "the emulated driver has no function " + std::string(symbol).substr(0, 256));
  });
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // namespace assay::emulator::exported
