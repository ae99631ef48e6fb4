// Every function of the CUDA driver API that this project calls or emulates, and a table of
// pointers for callers that load the driver at run time.
//
// A table is a plain value: filled once by LoadDriverFunctions, then shared between threads.
#ifndef ASSAY_BASE_CUDA_DRIVER_FUNCTIONS_H_
#define ASSAY_BASE_CUDA_DRIVER_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>

#include "base/cuda/driver_abi.h"

namespace assay::cuda {

// X(name, exported symbol, CUDA version that brought it as 1000 major + 10 minor, parameters). All
// return CUresult.
//
// What every driver since CUDA 11.4 has.
#define ASSAY_CUDA_REQUIRED_FUNCTIONS(X)                                                           \
  X(cuInit, cuInit, 2000, (unsigned int flags))                                                    \
  X(cuDriverGetVersion, cuDriverGetVersion, 2020, (int* version))                                  \
  X(cuGetErrorName, cuGetErrorName, 6000, (CUresult error, const char** name))                     \
  X(cuGetErrorString, cuGetErrorString, 6000, (CUresult error, const char** text))                 \
  X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int* count))                                        \
  X(cuDeviceGet, cuDeviceGet, 2000, (CUdevice * device, int ordinal))                              \
  X(cuDeviceGetName, cuDeviceGetName, 2000, (char* name, int bytes, CUdevice device))              \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid * uuid, CUdevice device))                  \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (char* id, int bytes, CUdevice device))        \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (size_t * bytes, CUdevice device))                \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000,                                              \
    (int* value, CUdevice_attribute attribute, CUdevice device))                                   \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000,                                      \
    (CUcontext * context, CUdevice device))                                                        \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device))             \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device))                 \
  X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000,                              \
    (CUdevice device, unsigned int flags))                                                         \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000,                                  \
    (CUdevice device, unsigned int* flags, int* active))                                           \
  X(cuCtxCreate, cuCtxCreate_v2, 3020, (CUcontext * context, unsigned int flags, CUdevice device)) \
  X(cuCtxDestroy, cuCtxDestroy_v2, 4000, (CUcontext context))                                      \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (CUcontext context))                              \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (CUcontext * context))                              \
  X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context))                                   \
  X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext * context))                                 \
  X(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice * device))                                     \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000, ())                                                  \
  X(cuCtxGetLimit, cuCtxGetLimit, 3010, (size_t * value, CUlimit limit))                           \
  X(cuCtxSetLimit, cuCtxSetLimit, 3010, (CUlimit limit, size_t value))                             \
  X(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, (CUfunc_cache config))                         \
  X(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, ())                           \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, (int* least, int* greatest))   \
  X(cuModuleLoadData, cuModuleLoadData, 2000, (CUmodule * module, const void* image))              \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010,                                                  \
    (CUmodule * module, const void* image, unsigned int count, CUjit_option* options,              \
     void** values))                                                                               \
  X(cuModuleUnload, cuModuleUnload, 2000, (CUmodule module))                                       \
  X(cuModuleGetFunction, cuModuleGetFunction, 2000,                                                \
    (CUfunction * function, CUmodule module, const char* name))                                    \
  X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020,                                                 \
    (CUdeviceptr * address, size_t * bytes, CUmodule module, const char* name))                    \
  X(cuFuncGetAttribute, cuFuncGetAttribute, 2020,                                                  \
    (int* value, CUfunction_attribute attribute, CUfunction function))                             \
  X(cuFuncSetAttribute, cuFuncSetAttribute, 9000,                                                  \
    (CUfunction function, CUfunction_attribute attribute, int value))                              \
  X(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, (CUfunction function, CUfunc_cache config))  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,      \
    6050, (int* blocks, CUfunction function, int block_threads, size_t dynamic_shared_bytes))      \
  X(cuMemGetInfo, cuMemGetInfo_v2, 3020, (size_t * free_bytes, size_t * total_bytes))              \
  X(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr * address, size_t bytes))                        \
  X(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr address))                                          \
  X(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020,                                           \
    (CUdeviceptr * base, size_t * bytes, CUdeviceptr address))                                     \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void** host, size_t bytes, unsigned int flags))         \
  X(cuMemFreeHost, cuMemFreeHost, 2000, (void* host))                                              \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, (CUdeviceptr to, const void* from, size_t bytes))         \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, (void* to, CUdeviceptr from, size_t bytes))               \
  X(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes))         \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020,                                                 \
    (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                             \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020,                                                 \
    (void* to, CUdeviceptr from, size_t bytes, CUstream stream))                                   \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020,                                                 \
    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                             \
  X(cuMemsetD8, cuMemsetD8_v2, 3020, (CUdeviceptr to, unsigned char value, size_t count))          \
  X(cuMemsetD16, cuMemsetD16_v2, 3020, (CUdeviceptr to, unsigned short value, size_t count))       \
  X(cuMemsetD32, cuMemsetD32_v2, 3020, (CUdeviceptr to, unsigned int value, size_t count))         \
  X(cuMemsetD8Async, cuMemsetD8Async, 3020,                                                        \
    (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                          \
  X(cuMemsetD16Async, cuMemsetD16Async, 3020,                                                      \
    (CUdeviceptr to, unsigned short value, size_t count, CUstream stream))                         \
  X(cuMemsetD32Async, cuMemsetD32Async, 3020,                                                      \
    (CUdeviceptr to, unsigned int value, size_t count, CUstream stream))                           \
  X(cuStreamCreate, cuStreamCreate, 2000, (CUstream * stream, unsigned int flags))                 \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050,                                  \
    (CUstream * stream, unsigned int flags, int priority))                                         \
  X(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream stream))                                  \
  X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream))                             \
  X(cuStreamQuery, cuStreamQuery, 2000, (CUstream stream))                                         \
  X(cuStreamWaitEvent, cuStreamWaitEvent, 3020,                                                    \
    (CUstream stream, CUevent event, unsigned int flags))                                          \
  X(cuEventCreate, cuEventCreate, 2000, (CUevent * event, unsigned int flags))                     \
  X(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream))                          \
  X(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event))                                 \
  X(cuEventQuery, cuEventQuery, 2000, (CUevent event))                                             \
  X(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent event))                                      \
  X(cuEventElapsedTime, cuEventElapsedTime, 2000,                                                  \
    (float* milliseconds, CUevent start, CUevent end))                                             \
  X(cuLaunchKernel, cuLaunchKernel, 4000,                                                          \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,           \
     unsigned int block_x, unsigned int block_y, unsigned int block_z,                             \
     unsigned int dynamic_shared_bytes, CUstream stream, void** arguments, void** extra))          \
  X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000,                                    \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,           \
     unsigned int block_x, unsigned int block_y, unsigned int block_z,                             \
     unsigned int dynamic_shared_bytes, CUstream stream, void** arguments))

// What older drivers lack; nullptr in the table then.
#define ASSAY_CUDA_OPTIONAL_FUNCTIONS(X)                                                 \
  X(cuLaunchKernelEx, cuLaunchKernelEx, 11060,                                           \
    (const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra)) \
  X(cuModuleGetLoadingMode, cuModuleGetLoadingMode, 11070, (CUmoduleLoadingMode * mode)) \
  X(cuFuncGetName, cuFuncGetName, 12030, (const char** name, CUfunction function))       \
  X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040,                                       \
    (CUfunction function, size_t index, size_t * offset, size_t * bytes))                \
  X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040,                           \
    (unsigned int* count, CUmodule module))                                              \
  X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040,                       \
    (CUfunction * functions, unsigned int count, CUmodule module))

// What the emulated driver has besides, for programs that are not ours; not in the table.
#define ASSAY_CUDA_OTHER_FUNCTIONS(X)                                                              \
  X(cuGetProcAddress, cuGetProcAddress, 11030,                                                     \
    (const char* symbol, void** function, int version, uint64_t flags))                            \
  X(cuGetProcAddress, cuGetProcAddress_v2, 12000,                                                  \
    (const char* symbol, void** function, int version, uint64_t flags,                             \
     CUdriverProcAddressQueryResult* status))                                                      \
  X(cuGetExportTable, cuGetExportTable, 3000, (const void** table, const CUuuid* id))              \
  X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, (CUuuid * uuid, CUdevice device))                      \
  X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, (CUdevice * device, const char* id))       \
  X(cuDeviceComputeCapability, cuDeviceComputeCapability, 2000,                                    \
    (int* major, int* minor, CUdevice device))                                                     \
  X(cuCtxCreate, cuCtxCreate_v3, 11040,                                                            \
    (CUcontext * context, void* affinity, int count, unsigned int flags, CUdevice device))         \
  X(cuCtxCreate, cuCtxCreate_v4, 12050,                                                            \
    (CUcontext * context, CUctxCreateParams * params, unsigned int flags, CUdevice device))        \
  X(cuCtxGetDevice, cuCtxGetDevice_v2, 13000, (CUdevice * device, CUcontext context))              \
  X(cuCtxSynchronize, cuCtxSynchronize_v2, 13000, (CUcontext context))                             \
  X(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020, (CUcontext context, unsigned int* version))      \
  X(cuCtxGetFlags, cuCtxGetFlags, 7000, (unsigned int* flags))                                     \
  X(cuCtxSetFlags, cuCtxSetFlags, 12010, (unsigned int flags))                                     \
  X(cuCtxGetId, cuCtxGetId, 12000, (CUcontext context, unsigned long long* id))                    \
  X(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, (CUfunc_cache * config))                       \
  X(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, (CUsharedconfig * config))             \
  X(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, (CUsharedconfig config))               \
  X(cuModuleLoad, cuModuleLoad, 2000, (CUmodule * module, const char* path))                       \
  X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, (CUmodule * module, const void* image))    \
  X(cuLibraryLoadData, cuLibraryLoadData, 12000,                                                   \
    (CUlibrary * library, const void* image, CUjit_option* jit_options, void** jit_values,         \
     unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count))         \
  X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000,                                           \
    (CUlibrary * library, const char* path, CUjit_option* jit_options, void** jit_values,          \
     unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count))         \
  X(cuLibraryUnload, cuLibraryUnload, 12000, (CUlibrary library))                                  \
  X(cuLibraryGetKernel, cuLibraryGetKernel, 12000,                                                 \
    (CUkernel * kernel, CUlibrary library, const char* name))                                      \
  X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040,                                       \
    (unsigned int* count, CUlibrary library))                                                      \
  X(cuLibraryGetModule, cuLibraryGetModule, 12000, (CUmodule * module, CUlibrary library))         \
  X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000,                                                 \
    (CUdeviceptr * address, size_t * bytes, CUlibrary library, const char* name))                  \
  X(cuKernelGetFunction, cuKernelGetFunction, 12000, (CUfunction * function, CUkernel kernel))     \
  X(cuKernelGetName, cuKernelGetName, 12030, (const char** name, CUkernel kernel))                 \
  X(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040,                                             \
    (CUkernel kernel, size_t index, size_t * offset, size_t * bytes))                              \
  X(cuKernelGetAttribute, cuKernelGetAttribute, 12000,                                             \
    (int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device))                \
  X(cuKernelSetAttribute, cuKernelSetAttribute, 12000,                                             \
    (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device))                 \
  X(cuFuncGetModule, cuFuncGetModule, 11000, (CUmodule * module, CUfunction function))             \
  X(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020,                                      \
    (CUfunction function, CUsharedconfig config))                                                  \
  X(cuFuncIsLoaded, cuFuncIsLoaded, 12040, (int* state, CUfunction function))                      \
  X(cuFuncLoad, cuFuncLoad, 12040, (CUfunction function))                                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                          \
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,                                    \
    (int* blocks, CUfunction function, int block_threads, size_t dynamic_shared_bytes,             \
     unsigned int flags))                                                                          \
  X(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050,                      \
    (int* grid_least, int* block_threads, CUfunction function, CUoccupancyB2DSize shared_bytes_of, \
     size_t dynamic_shared_bytes, int threads_max))                                                \
  X(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000,    \
    (int* grid_least, int* block_threads, CUfunction function, CUoccupancyB2DSize shared_bytes_of, \
     size_t dynamic_shared_bytes, int threads_max, unsigned int flags))                            \
  X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020,       \
    (size_t * bytes, CUfunction function, int blocks, int block_threads))                          \
  X(cuMemAllocPitch, cuMemAllocPitch_v2, 3020,                                                     \
    (CUdeviceptr * address, size_t * pitch, size_t width, size_t height,                           \
     unsigned int element_bytes))                                                                  \
  X(cuMemAllocHost, cuMemAllocHost_v2, 3020, (void** host, size_t bytes))                          \
  X(cuMemAllocManaged, cuMemAllocManaged, 6000,                                                    \
    (CUdeviceptr * address, size_t bytes, unsigned int flags))                                     \
  X(cuMemAllocAsync, cuMemAllocAsync, 11020,                                                       \
    (CUdeviceptr * address, size_t bytes, CUstream stream))                                        \
  X(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream))                 \
  X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020,                                 \
    (CUdeviceptr * address, void* host, unsigned int flags))                                       \
  X(cuMemHostGetFlags, cuMemHostGetFlags, 2030, (unsigned int* flags, void* host))                 \
  X(cuMemHostRegister, cuMemHostRegister_v2, 6050, (void* host, size_t bytes, unsigned int flags)) \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void* host))                                  \
  X(cuMemcpy, cuMemcpy, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes))                    \
  X(cuMemcpyAsync, cuMemcpyAsync, 4000,                                                            \
    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                             \
  X(cuMemcpy2D, cuMemcpy2D_v2, 3020, (const CUDA_MEMCPY2D* copy))                                  \
  X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020, (const CUDA_MEMCPY2D* copy))                \
  X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D* copy, CUstream stream))       \
  X(cuPointerGetAttribute, cuPointerGetAttribute, 4000,                                            \
    (void* data, CUpointer_attribute attribute, CUdeviceptr address))                              \
  X(cuPointerGetAttributes, cuPointerGetAttributes, 7000,                                          \
    (unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr address))       \
  X(cuStreamGetCtx, cuStreamGetCtx, 9020, (CUstream stream, CUcontext * context))                  \
  X(cuStreamGetFlags, cuStreamGetFlags, 5050, (CUstream stream, unsigned int* flags))              \
  X(cuStreamGetPriority, cuStreamGetPriority, 5050, (CUstream stream, int* priority))              \
  X(cuStreamGetId, cuStreamGetId, 12000, (CUstream stream, unsigned long long* id))                \
  X(cuStreamAddCallback, cuStreamAddCallback, 5000,                                                \
    (CUstream stream, CUstreamCallback callback, void* user, unsigned int flags))                  \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010,                                          \
    (CUstream stream, CUstreamCaptureMode mode))                                                   \
  X(cuStreamEndCapture, cuStreamEndCapture, 10000, (CUstream stream, CUgraph * graph))             \
  X(cuStreamIsCapturing, cuStreamIsCapturing, 10000,                                               \
    (CUstream stream, CUstreamCaptureStatus * status))                                             \
  X(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010,                                         \
    (CUevent event, CUstream stream, unsigned int flags))                                          \
  X(cuEventElapsedTime, cuEventElapsedTime_v2, 12080,                                              \
    (float* milliseconds, CUevent start, CUevent end))                                             \
  X(cuLaunchHostFunc, cuLaunchHostFunc, 10000, (CUstream stream, CUhostFn function, void* user))

// Members are named as in CUDA's header, without version suffix.
struct DriverFunctions {
#define ASSAY_CUDA_MEMBER(name, symbol, since, parameters) CUresult(*name) parameters = nullptr;
  ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_CUDA_MEMBER)
  ASSAY_CUDA_OPTIONAL_FUNCTIONS(ASSAY_CUDA_MEMBER)
#undef ASSAY_CUDA_MEMBER
};

// Fills the table by resolve("cuMemAlloc_v2"), which returns void*, nullptr for a symbol that is
// not there: dlsym with a library bound to it. Returns nullptr, or the first symbol that is
// missing: the driver is too old then.
template <typename Resolve>
const char* LoadDriverFunctions(Resolve&& resolve, DriverFunctions* functions) {
  const char* missing = nullptr;
#define ASSAY_CUDA_LOAD(name, symbol, since, parameters) \
  functions->name = reinterpret_cast<CUresult(*) parameters>(resolve(#symbol));
#define ASSAY_CUDA_REQUIRE(name, symbol, since, parameters) \
  if (functions->name == nullptr && missing == nullptr) missing = #symbol;
  ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_CUDA_LOAD)
  ASSAY_CUDA_OPTIONAL_FUNCTIONS(ASSAY_CUDA_LOAD)
  ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_CUDA_REQUIRE)
#undef ASSAY_CUDA_LOAD
#undef ASSAY_CUDA_REQUIRE
  return missing;
}

}  // namespace assay::cuda

#endif  // ASSAY_BASE_CUDA_DRIVER_FUNCTIONS_H_
