// Everything of the driver API that runs no kernel: initialisation, contexts, memory, streams,
// events, look-up by name.
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/cuda/driver_functions.h"
#include "base/cuda/emulator_abi.h"
#include "emulator/driver/testing/driver_fixture.h"

namespace assay::emulator::exported {
namespace {

// A pointer that no object has; a handle must never be followed.
template <typename Handle>
Handle Garbage() {
  return reinterpret_cast<Handle>(uint64_t{0xdead'beef'0000'0010});
}

class DriverTest : public DriverFixture {};

TEST_F(DriverTest, NothingWorksBeforeInit) {
  State& state = State::Get();
  {
    const absl::MutexLock lock(&state.mutex);
    state.initialized = false;
  }
  int count = 0;
  CUdeviceptr address = 0;
  CUcontext context = nullptr;
  ASSAY_EXPECT_RESULT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  ASSAY_EXPECT_RESULT(cuMemAlloc_v2(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
  ASSAY_EXPECT_RESULT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  ASSAY_EXPECT_RESULT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  int version = 0;
  ASSAY_EXPECT_SUCCESS(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  ASSAY_EXPECT_SUCCESS(cuInit(0));
  ASSAY_EXPECT_SUCCESS(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 1);
}

TEST_F(DriverTest, TheDeviceSaysThatItIsEmulated) {
  CUdevice device = -1;
  ASSAY_EXPECT_SUCCESS(cuDeviceGet(&device, 0));
  char name[64] = "";
  ASSAY_EXPECT_SUCCESS(cuDeviceGetName(name, sizeof name, device));
  EXPECT_STREQ(name, "Assay emulated sm_80");
  char cut[6] = "";
  ASSAY_EXPECT_SUCCESS(cuDeviceGetName(cut, sizeof cut, device));
  EXPECT_STREQ(cut, "Assay");
  size_t bytes = 0;
  ASSAY_EXPECT_SUCCESS(cuDeviceTotalMem_v2(&bytes, device));
  EXPECT_EQ(bytes, size_t{64} << 20);
  int major = 0;
  int minor = -1;
  ASSAY_EXPECT_SUCCESS(cuDeviceComputeCapability(&major, &minor, device));
  EXPECT_EQ(major, 8);
  EXPECT_EQ(minor, 0);
}

TEST_F(DriverTest, ArgumentsAreChecked) {
  const CUdeviceptr small = Allocate(16);
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUevent timed = nullptr;
  ASSAY_EXPECT_SUCCESS(cuEventCreate(&timed, 0));
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  void* host = nullptr;
  size_t bytes = 0;
  char buffer[64] = "";
  int value = 0;
  float milliseconds = 0;
  const void* table = nullptr;
  const char* text = nullptr;
  CUDA_MEMCPY2D copy = {};
  const struct {
    const char* what;
    std::function<CUresult()> call;
    CUresult expected;
  } cases[] = {
      {"ordinal", [&] { return cuDeviceGet(&value, 1); }, CUDA_ERROR_INVALID_DEVICE},
      {"negative ordinal", [&] { return cuDeviceGet(&value, -1); }, CUDA_ERROR_INVALID_DEVICE},
      {"no name", [&] { return cuDeviceGetName(nullptr, 1, 0); }, CUDA_ERROR_INVALID_VALUE},
      {"no room", [&] { return cuDeviceGetName(buffer, 0, 0); }, CUDA_ERROR_INVALID_VALUE},
      {"bus", [&] { return cuDeviceGetPCIBusId(buffer, 64, 0); }, CUDA_ERROR_NOT_SUPPORTED},
      {"attribute",
       [&] { return cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(500), 0); },
       CUDA_ERROR_INVALID_VALUE},
      {"export table", [&] { return cuGetExportTable(&table, nullptr); }, CUDA_ERROR_NOT_SUPPORTED},
      {"error name", [&] { return cuGetErrorName(static_cast<CUresult>(12345), &text); },
       CUDA_ERROR_INVALID_VALUE},
      {"context flags", [&] { return cuCtxCreate_v2(&context, 0x100, 0); },
       CUDA_ERROR_INVALID_VALUE},
      {"context device", [&] { return cuCtxCreate_v2(&context, 0, 3); }, CUDA_ERROR_INVALID_DEVICE},
      {"destroy garbage", [&] { return cuCtxDestroy_v2(Garbage<CUcontext>()); },
       CUDA_ERROR_INVALID_CONTEXT},
      {"push null", [&] { return cuCtxPushCurrent_v2(nullptr); }, CUDA_ERROR_INVALID_CONTEXT},
      {"set garbage", [&] { return cuCtxSetCurrent(Garbage<CUcontext>()); },
       CUDA_ERROR_INVALID_CONTEXT},
      {"limit", [&] { return cuCtxGetLimit(&bytes, static_cast<cuda::CUlimit>(77)); },
       CUDA_ERROR_UNSUPPORTED_LIMIT},
      {"alloc nothing", [&] { return cuMemAlloc_v2(&address, 0); }, CUDA_ERROR_INVALID_VALUE},
      {"alloc nowhere", [&] { return cuMemAlloc_v2(nullptr, 8); }, CUDA_ERROR_INVALID_VALUE},
      {"alloc too much", [&] { return cuMemAlloc_v2(&address, size_t{1} << 40); },
       CUDA_ERROR_OUT_OF_MEMORY},
      {"alloc everything", [&] { return cuMemAlloc_v2(&address, ~size_t{0}); },
       CUDA_ERROR_OUT_OF_MEMORY},
      {"pitch overflow",
       [&] { return cuMemAllocPitch_v2(&address, &bytes, size_t{1} << 33, size_t{1} << 33, 4); },
       CUDA_ERROR_OUT_OF_MEMORY},
      {"managed", [&] { return cuMemAllocManaged(&address, 8, 1); }, CUDA_ERROR_NOT_SUPPORTED},
      {"free null", [&] { return cuMemFree_v2(0); }, CUDA_ERROR_INVALID_VALUE},
      {"free inside", [&] { return cuMemFree_v2(small + 4); }, CUDA_ERROR_INVALID_VALUE},
      {"host flags", [&] { return cuMemHostAlloc(&host, 8, 0x80); }, CUDA_ERROR_INVALID_VALUE},
      {"host mapped", [&] { return cuMemHostAlloc(&host, 8, 2); }, CUDA_ERROR_NOT_SUPPORTED},
      {"free host", [&] { return cuMemFreeHost(buffer); }, CUDA_ERROR_INVALID_VALUE},
      {"copy in beyond", [&] { return cuMemcpyHtoD_v2(small, buffer, 17); },
       CUDA_ERROR_INVALID_VALUE},
      {"copy in from null", [&] { return cuMemcpyHtoD_v2(small, nullptr, 8); },
       CUDA_ERROR_INVALID_VALUE},
      {"copy out to null", [&] { return cuMemcpyDtoH_v2(nullptr, small, 8); },
       CUDA_ERROR_INVALID_VALUE},
      {"copy out beyond", [&] { return cuMemcpyDtoH_v2(buffer, small + 8, 9); },
       CUDA_ERROR_INVALID_VALUE},
      {"copy host as device",
       [&] { return cuMemcpyDtoH_v2(buffer, reinterpret_cast<CUdeviceptr>(buffer), 8); },
       CUDA_ERROR_INVALID_VALUE},
      {"copy nothing", [&] { return cuMemcpyHtoD_v2(0, nullptr, 0); }, CUDA_SUCCESS},
      {"copy in a stream that is none",
       [&] { return cuMemcpyHtoDAsync_v2(small, buffer, 8, Garbage<CUstream>()); },
       CUDA_ERROR_INVALID_HANDLE},
      {"fill beyond", [&] { return cuMemsetD32_v2(small, 1, 5); }, CUDA_ERROR_INVALID_VALUE},
      {"fill misaligned", [&] { return cuMemsetD32_v2(small + 2, 1, 1); },
       CUDA_ERROR_INVALID_VALUE},
      {"copy nothing described", [&] { return cuMemcpy2D_v2(nullptr); }, CUDA_ERROR_INVALID_VALUE},
      {"copy of no memory", [&] { return cuMemcpy2D_v2(&copy); }, CUDA_ERROR_INVALID_VALUE},
      {"range of nothing", [&] { return cuMemGetAddressRange_v2(&address, &bytes, 12); },
       CUDA_ERROR_NOT_FOUND},
      {"pointer of nothing",
       [&] { return cuPointerGetAttribute(&value, cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 12); },
       CUDA_ERROR_INVALID_VALUE},
      {"stream flags", [&] { return cuStreamCreate(&stream, 2); }, CUDA_ERROR_INVALID_VALUE},
      {"destroy null stream", [&] { return cuStreamDestroy_v2(nullptr); },
       CUDA_ERROR_INVALID_HANDLE},
      {"stream garbage", [&] { return cuStreamSynchronize(Garbage<CUstream>()); },
       CUDA_ERROR_INVALID_HANDLE},
      {"capture", [&] { return cuStreamBeginCapture_v2(nullptr, {}); }, CUDA_ERROR_NOT_SUPPORTED},
      {"host function", [&] { return cuLaunchHostFunc(nullptr, nullptr, nullptr); },
       CUDA_ERROR_INVALID_VALUE},
      {"event flags", [&] { return cuEventCreate(&event, 0x40); }, CUDA_ERROR_INVALID_VALUE},
      {"event garbage", [&] { return cuEventRecord(Garbage<CUevent>(), nullptr); },
       CUDA_ERROR_INVALID_HANDLE},
      {"elapsed of garbage",
       [&] { return cuEventElapsedTime(&milliseconds, Garbage<CUevent>(), timed); },
       CUDA_ERROR_INVALID_HANDLE},
      {"elapsed", [&] { return cuEventElapsedTime(&milliseconds, timed, timed); },
       CUDA_ERROR_NOT_SUPPORTED},
      {"module garbage", [&] { return cuModuleUnload(Garbage<CUmodule>()); },
       CUDA_ERROR_INVALID_HANDLE},
      {"function of garbage",
       [&] { return cuModuleGetFunction(&function, Garbage<CUmodule>(), "k"); },
       CUDA_ERROR_INVALID_HANDLE},
      {"no image", [&] { return cuModuleLoadData(&module, nullptr); }, CUDA_ERROR_INVALID_VALUE},
      {"cubin",
       [&] {
         return cuModuleLoadData(&module,
                                 "\x7f"
                                 "ELF\x02\x01");
       },
       CUDA_ERROR_NO_BINARY_FOR_GPU},
      {"fat binary", [&] { return cuModuleLoadFatBinary(&module, "\x50\xed\x55\xba\x01"); },
       CUDA_ERROR_NO_BINARY_FOR_GPU},
      {"no file", [&] { return cuModuleLoad(&module, "/nonexistent/file.ptx"); },
       CUDA_ERROR_FILE_NOT_FOUND},
      {"launch garbage",
       [&] {
         return cuLaunchKernel(Garbage<CUfunction>(), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                               nullptr);
       },
       CUDA_ERROR_INVALID_HANDLE},
      {"a stream as a function",
       [&] {
         return cuLaunchKernel(reinterpret_cast<CUfunction>(timed), 1, 1, 1, 1, 1, 1, 0, nullptr,
                               nullptr, nullptr);
       },
       CUDA_ERROR_INVALID_HANDLE},
      {"poison beyond", [&] { return assayEmulatorPoison(small, 17); }, CUDA_ERROR_INVALID_VALUE},
      {"name inside",
       [&] { return assayEmulatorSetBuffer(small + 4, cuda::kAssayEmulatorInput, "x"); },
       CUDA_ERROR_INVALID_VALUE},
      {"no report", [&] { return assayEmulatorTakeReport(nullptr, nullptr); },
       CUDA_ERROR_INVALID_VALUE},
  };
  for (const auto& test : cases) {
    const CUresult result = test.call();
    EXPECT_EQ(result, test.expected) << test.what << ": " << ResultName(result);
  }
  // None of it did harm.
  EXPECT_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(small), CUDA_ERROR_INVALID_VALUE) << "freed twice";
  EXPECT_EQ(cuMemcpyHtoD_v2(small, buffer, 1), CUDA_ERROR_INVALID_VALUE) << "written when freed";
}

TEST_F(DriverTest, EveryResultHasANameAndAText){
#define ASSAY_CHECK_RESULT(name, number)                       \
  {                                                            \
    const char* text = nullptr;                                \
    ASSAY_EXPECT_SUCCESS(cuGetErrorName(cuda::name, &text));   \
    EXPECT_STREQ(text, #name);                                 \
    ASSAY_EXPECT_SUCCESS(cuGetErrorString(cuda::name, &text)); \
    EXPECT_GT(std::strlen(text), 5u);                          \
  }
    ASSAY_CUDA_RESULTS(ASSAY_CHECK_RESULT)
#undef ASSAY_CHECK_RESULT
}

TEST_F(DriverTest, ContextsStackPerThread) {
  CUcontext first = nullptr;
  ASSAY_EXPECT_SUCCESS(cuCtxGetCurrent(&first));
  EXPECT_EQ(first, context_);
  CUcontext second = nullptr;
  ASSAY_EXPECT_SUCCESS(cuCtxCreate_v4(&second, nullptr, 0, 0));
  const CUdeviceptr address = Allocate(64);
  CUcontext popped = nullptr;
  ASSAY_EXPECT_SUCCESS(cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, second);
  ASSAY_EXPECT_SUCCESS(cuCtxPushCurrent_v2(second));
  std::thread([&] {
    CUcontext current = second;
    ASSAY_EXPECT_SUCCESS(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    ASSAY_EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    ASSAY_EXPECT_SUCCESS(cuCtxSetCurrent(second));
    ASSAY_EXPECT_SUCCESS(cuMemsetD8_v2(address, 1, 64));
    ASSAY_EXPECT_SUCCESS(cuCtxDestroy_v2(second));
  }).join();
  ASSAY_EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSAY_EXPECT_SUCCESS(cuCtxPopCurrent_v2(nullptr));
  ASSAY_EXPECT_SUCCESS(cuCtxSynchronize());
}

TEST_F(DriverTest, ThePrimaryContextIsCounted) {
  unsigned int flags = 9;
  int active = 9;
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  ASSAY_EXPECT_RESULT(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxSetFlags_v2(0, cuda::CU_CTX_SCHED_BLOCKING_SYNC));
  CUcontext once = nullptr;
  CUcontext twice = nullptr;
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxRetain(&once, 0));
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxRetain(&twice, 0));
  EXPECT_EQ(once, twice);
  ASSAY_EXPECT_RESULT(cuCtxDestroy_v2(once), CUDA_ERROR_INVALID_CONTEXT);
  ASSAY_EXPECT_SUCCESS(cuCtxSetCurrent(once));
  ASSAY_EXPECT_SUCCESS(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, cuda::CU_CTX_SCHED_BLOCKING_SYNC);
  const CUdeviceptr address = Allocate(64);
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxReset_v2(0));
  ASSAY_EXPECT_RESULT(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxRelease_v2(0));
  ASSAY_EXPECT_SUCCESS(cuCtxSynchronize());
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxRelease_v2(0));
  ASSAY_EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSAY_EXPECT_SUCCESS(cuDevicePrimaryCtxSetFlags_v2(0, 0));
  ASSAY_EXPECT_SUCCESS(cuCtxSetCurrent(context_));
}

TEST_F(DriverTest, MemoryIsCountedAndFound) {
  size_t free_before = 0;
  size_t free_after = 0;
  size_t total = 0;
  ASSAY_EXPECT_SUCCESS(cuMemGetInfo_v2(&free_before, &total));
  const CUdeviceptr address = Allocate(1000);
  EXPECT_EQ(address % 256, 0u);
  ASSAY_EXPECT_SUCCESS(cuMemGetInfo_v2(&free_after, &total));
  EXPECT_GE(free_before - free_after, 1000u);
  EXPECT_EQ(total, size_t{64} << 20);

  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSAY_EXPECT_SUCCESS(cuMemGetAddressRange_v2(&base, &bytes, address + 999));
  EXPECT_EQ(base, address);
  EXPECT_EQ(bytes, 1000u);

  unsigned int type = 0;
  ASSAY_EXPECT_SUCCESS(
      cuPointerGetAttribute(&type, cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 5));
  EXPECT_EQ(type, static_cast<unsigned int>(cuda::CU_MEMORYTYPE_DEVICE));
  CUpointer_attribute wanted[] = {cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  cuda::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                  cuda::CU_POINTER_ATTRIBUTE_CONTEXT};
  CUcontext owner = context_;
  void* data[] = {&type, &bytes, &owner};
  ASSAY_EXPECT_SUCCESS(cuPointerGetAttributes(3, wanted, data, 12));
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(owner, nullptr);

  void* host = nullptr;
  ASSAY_EXPECT_SUCCESS(cuMemHostAlloc(&host, 100, cuda::CU_MEMHOSTALLOC_PORTABLE));
  ASSAY_EXPECT_SUCCESS(cuPointerGetAttribute(&type, cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                             reinterpret_cast<CUdeviceptr>(host) + 99));
  EXPECT_EQ(type, static_cast<unsigned int>(cuda::CU_MEMORYTYPE_HOST));
  ASSAY_EXPECT_SUCCESS(cuMemFreeHost(host));
  ASSAY_EXPECT_RESULT(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, UnifiedCopiesTellHostFromDevice) {
  std::vector<int> in = {1, 2, 3, 4};
  std::vector<int> out(4);
  const CUdeviceptr address = Allocate(16);
  ASSAY_EXPECT_SUCCESS(cuMemcpy(address, reinterpret_cast<CUdeviceptr>(in.data()), 16));
  ASSAY_EXPECT_SUCCESS(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(out.data()), address, 16,
                                     reinterpret_cast<CUstream>(cuda::kStreamPerThread)));
  EXPECT_EQ(in, out);
  ASSAY_EXPECT_RESULT(cuMemcpy(address, 0, 16), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, CopiesPlanes) {
  std::vector<uint8_t> in(4 * 10);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i);
  CUdeviceptr address = 0;
  size_t pitch = 0;
  ASSAY_EXPECT_SUCCESS(cuMemAllocPitch_v2(&address, &pitch, 8, 4, 4));
  EXPECT_EQ(pitch, 512u);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = cuda::CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcXInBytes = 2;
  copy.srcPitch = 10;
  copy.dstMemoryType = cuda::CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = address;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 8;
  copy.Height = 4;
  ASSAY_EXPECT_SUCCESS(cuMemcpy2D_v2(&copy));
  const std::vector<uint8_t> row = Download<uint8_t>(address + 2 * pitch, 8);
  EXPECT_EQ(row, (std::vector<uint8_t>{22, 23, 24, 25, 26, 27, 28, 29}));
  copy.Height = 5;
  ASSAY_EXPECT_RESULT(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.Height = 4;
  copy.srcXInBytes = 3;
  ASSAY_EXPECT_RESULT(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, PoisonedBytesAreFound) {
  const CUdeviceptr address = Allocate(100);
  uint64_t count = 0;
  uint64_t first = 0;
  ASSAY_EXPECT_SUCCESS(assayEmulatorFindUninitialized(address, 100, &count, &first));
  EXPECT_EQ(count, 100u);
  ASSAY_EXPECT_SUCCESS(cuMemsetD8_v2(address, 7, 100));
  ASSAY_EXPECT_SUCCESS(assayEmulatorFindUninitialized(address, 100, &count, &first));
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(first, 100u);
  ASSAY_EXPECT_SUCCESS(assayEmulatorPoison(address + 40, 3));
  ASSAY_EXPECT_SUCCESS(assayEmulatorFindUninitialized(address, 100, &count, &first));
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(first, 40u);
  EXPECT_EQ(Download<uint8_t>(address + 40, 1)[0], 7) << "values stay";
}

TEST_F(DriverTest, StreamsAndEvents) {
  CUstream stream = nullptr;
  ASSAY_EXPECT_SUCCESS(cuStreamCreateWithPriority(&stream, cuda::CU_STREAM_NON_BLOCKING, -100));
  int priority = 0;
  int least = 1;
  int greatest = 1;
  ASSAY_EXPECT_SUCCESS(cuStreamGetPriority(stream, &priority));
  ASSAY_EXPECT_SUCCESS(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(priority, greatest);
  EXPECT_LE(greatest, least);
  CUevent event = nullptr;
  ASSAY_EXPECT_SUCCESS(cuEventCreate(&event, cuda::CU_EVENT_DISABLE_TIMING));
  ASSAY_EXPECT_SUCCESS(cuEventRecord(event, stream));
  ASSAY_EXPECT_SUCCESS(cuStreamWaitEvent(nullptr, event, 0));
  ASSAY_EXPECT_SUCCESS(cuEventQuery(event));
  int calls = 0;
  ASSAY_EXPECT_SUCCESS(cuLaunchHostFunc(
      stream,
      [](void* user) {
        // A callback may call the driver.
        int count = 0;
        cuDeviceGetCount(&count);
        *static_cast<int*>(user) += count;
      },
      &calls));
  EXPECT_EQ(calls, 1);
  ASSAY_EXPECT_SUCCESS(cuStreamDestroy_v2(stream));
  ASSAY_EXPECT_RESULT(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  ASSAY_EXPECT_SUCCESS(cuEventDestroy_v2(event));
  ASSAY_EXPECT_RESULT(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);

  // Of another context.
  ASSAY_EXPECT_SUCCESS(cuStreamCreate(&stream, 0));
  CUcontext other = nullptr;
  ASSAY_EXPECT_SUCCESS(cuCtxCreate_v2(&other, 0, 0));
  ASSAY_EXPECT_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  ASSAY_EXPECT_SUCCESS(cuCtxDestroy_v2(other));
  ASSAY_EXPECT_SUCCESS(cuStreamSynchronize(stream));
}

TEST_F(DriverTest, FunctionsAreFoundByName) {
  const struct {
    const char* name;
    int version;
    void* expected;
    cuda::CUdriverProcAddressQueryResult status;
  } cases[] = {
      {"cuMemAlloc", 12000, reinterpret_cast<void*>(&cuMemAlloc_v2),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuMemAlloc_v2", 12000, reinterpret_cast<void*>(&cuMemAlloc_v2),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuCtxCreate", 11000, reinterpret_cast<void*>(&cuCtxCreate_v2),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuCtxCreate", 12000, reinterpret_cast<void*>(&cuCtxCreate_v3),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuCtxCreate", 13000, reinterpret_cast<void*>(&cuCtxCreate_v4),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuGetProcAddress", 11030, reinterpret_cast<void*>(&cuGetProcAddress),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuGetProcAddress", 13000, reinterpret_cast<void*>(&cuGetProcAddress_v2),
       cuda::CU_GET_PROC_ADDRESS_SUCCESS},
      {"cuLaunchKernelEx", 11000, nullptr, cuda::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
      {"cuGraphLaunch", 13000, nullptr, cuda::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
      {"", 13000, nullptr, cuda::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
  };
  for (const auto& test : cases) {
    void* found = reinterpret_cast<void*>(1);
    cuda::CUdriverProcAddressQueryResult status = {};
    const CUresult result = cuGetProcAddress_v2(test.name, &found, test.version, 0, &status);
    EXPECT_EQ(result, test.expected == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS) << test.name;
    EXPECT_EQ(found, test.expected) << test.name;
    EXPECT_EQ(status, test.status) << test.name;
  }
  void* found = nullptr;
  ASSAY_EXPECT_RESULT(cuGetProcAddress_v2("cuInit", &found, 13000, 8, nullptr),
                      CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(cuGetProcAddress_v2(nullptr, &found, 13000, 0, nullptr),
                      CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, TheTableIsFilled) {
  const auto resolve = [](const char* symbol) {
    void* found = nullptr;
    cuGetProcAddress_v2(symbol, &found, 13000, 0, nullptr);
    return found;
  };
  cuda::DriverFunctions functions;
  EXPECT_EQ(cuda::LoadDriverFunctions(resolve, &functions), nullptr);
  ASSERT_NE(functions.cuMemAlloc, nullptr);
  ASSERT_NE(functions.cuFuncGetParamInfo, nullptr);
  CUdeviceptr address = 0;
  ASSAY_EXPECT_SUCCESS(functions.cuMemAlloc(&address, 8));
  ASSAY_EXPECT_SUCCESS(functions.cuMemFree(address));

  cuda::DriverFunctions old;
  EXPECT_STREQ(cuda::LoadDriverFunctions(
                   [&](const char* symbol) {
                     const std::string_view name(symbol);
                     return name == "cuEventRecord" || name == "cuFuncGetName" ? nullptr
                                                                               : resolve(symbol);
                   },
                   &old),
               "cuEventRecord");
  EXPECT_EQ(old.cuFuncGetName, nullptr);

  // A real driver has no functions of the emulator.
  cuda::EmulatorFunctions emulator;
  EXPECT_STREQ(cuda::LoadEmulatorFunctions(resolve, &emulator), "assayEmulatorVersion");
}

TEST_F(DriverTest, ConfigurationIsChecked) {
  const auto with = [](const std::function<void(AssayEmulatorOptions*)>& change) {
    AssayEmulatorOptions options = PlainOptions();
    change(&options);
    return assayEmulatorConfigure(&options);
  };
  ASSAY_EXPECT_RESULT(assayEmulatorConfigure(nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->struct_bytes = 8; }), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->arch = 70; }), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->check_races = 2; }), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->host_threads = 5000; }), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->device_bytes = 5; }), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->arch = 90; }), CUDA_ERROR_ILLEGAL_STATE);
  ASSAY_EXPECT_RESULT(with([](auto* o) { o->device_bytes = 1 << 20; }), CUDA_ERROR_ILLEGAL_STATE);
  ASSAY_EXPECT_SUCCESS(with([](auto* o) { o->seed = 7; }));
  ASSAY_EXPECT_SUCCESS(cuCtxDestroy_v2(context_));
  context_ = nullptr;
  ASSAY_EXPECT_SUCCESS(with([](auto* o) { o->arch = 90; }));
  int major = 0;
  ASSAY_EXPECT_SUCCESS(
      cuDeviceGetAttribute(&major, cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(major, 9);
  EXPECT_EQ(assayEmulatorVersion(), cuda::kEmulatorAbiVersion);
}

TEST_F(DriverTest, AFailureLeavesItsMessage) {
  CUdeviceptr address = 0;
  cuMemAllocManaged(&address, 8, 1);
  EXPECT_NE(TakeReport().last_error.find("managed memory"), std::string::npos);
  EXPECT_EQ(TakeReport().last_error, "");
}

TEST(ReportSinkTest, IsBounded) {
  ReportSink sink;
  for (int launch = 0; launch < 20; ++launch) {
    LaunchResult result;
    result.faults.resize(kFaultsMax);
    result.stopped = launch % 2 == 0;
    result.output = std::string(100'000, static_cast<char>('a' + launch));
    result.counters.warp_instructions = 5;
    sink.Add(std::move(result));
  }
  EXPECT_EQ(sink.faults.size(), kReportFaultsMax);
  EXPECT_EQ(sink.faults_dropped, 20 * kFaultsMax - kReportFaultsMax);
  EXPECT_EQ(sink.output.size(), kReportOutputBytesMax);
  EXPECT_EQ(sink.output_bytes_dropped, 2'000'000 - kReportOutputBytesMax);
  EXPECT_EQ(sink.output[100'000], 'b');
  EXPECT_EQ(sink.counters.warp_instructions, 100u);
  EXPECT_EQ(sink.launches, 20u);
  EXPECT_EQ(sink.launches_stopped, 10u);
}

}  // namespace
}  // namespace assay::emulator::exported
