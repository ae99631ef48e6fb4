// Modules and launches through the driver API: what runs, what is refused, and how a fault ends a
// context.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "emulator/driver/testing/driver_fixture.h"

namespace assay::emulator::exported {
namespace {

constexpr char kVectorAdd[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r5, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra done;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.f32 %f1, [%rd5];
  add.s64 %rd6, %rd2, %rd4;
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  add.s64 %rd7, %rd3, %rd4;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}
)";

constexpr char kVarious[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry empty() { ret; }
.visible .entry mixed(.param .u8 small, .param .u64 out, .param .f32 value)
{
  .reg .b16 %h<2>;
  .reg .b32 %r<2>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<2>;
  ld.param.u8 %h1, [small];
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [value];
  cvt.u32.u16 %r1, %h1;
  st.global.u32 [%rd1], %r1;
  st.global.f32 [%rd1+4], %f1;
  ret;
}
.visible .entry limited() .maxntid 64, 1, 1 { ret; }
.visible .entry required() .reqntid 32, 2, 1 { ret; }
.visible .entry shared_memory()
{
  .shared .align 4 .b8 tile[1024];
  .reg .b32 %r<3>;
  mov.u32 %r1, tile;
  mov.u32 %r2, dynamic;
  st.shared.u32 [%r1], 1;
  st.shared.u32 [%r2], 2;
  ret;
}
.visible .entry count()
{
  .reg .b32 %r<3>;
  ld.global.u32 %r1, [counter];
  add.u32 %r2, %r1, 1;
  st.global.u32 [counter], %r2;
  ret;
}
.visible .entry store(.param .u64 at)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
  st.global.u32 [%rd1], 5;
  ret;
}
.visible .entry load(.param .u64 at)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [at];
  ld.global.u32 %r1, [%rd1];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry stop() { trap; ret; }
.visible .entry spin()
{
again:
  bra again;
}
)";

constexpr char kUnknownOpcode[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry fine() { ret; }
.visible .entry strange()
{
  .reg .b32 %r<2>;
  frobnicate.u32 %r1, %r1;
  ret;
}
)";

class DriverLaunchTest : public DriverFixture {
 protected:
  CUresult Run(CUfunction function, unsigned int grid, unsigned int block,
               std::vector<void*> arguments, unsigned int shared = 0) {
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr,
                          arguments.empty() ? nullptr : arguments.data(), nullptr);
  }
  CUfunction Various(const char* name) { return Kernel(kVarious, name); }
};

TEST_F(DriverLaunchTest, AddsVectors) {
  constexpr uint32_t kCount = 1000;
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i) / 8;
    b[i] = static_cast<float>(kCount - i) * 3;
  }
  CUdeviceptr da = Upload(a);
  CUdeviceptr db = Upload(b);
  CUdeviceptr dc = Allocate(kCount * sizeof(float));
  ASSAY_EXPECT_SUCCESS(assayEmulatorSetBuffer(da, cuda::kAssayEmulatorInput, "a"));
  uint32_t n = kCount;
  ASSAY_EXPECT_SUCCESS(Run(Kernel(kVectorAdd, "vector_add"), 4, 256, {&da, &db, &dc, &n}));
  const std::vector<float> c = Download<float>(dc, kCount);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  const TakenReport report = TakeReport();
  EXPECT_EQ(report.launches, 1u);
  EXPECT_EQ(report.launches_stopped, 0u);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0].message;
  EXPECT_EQ(report.counters.f32_flops, kCount);
  EXPECT_EQ(report.counters.global_load_bytes, 8u * kCount);
  EXPECT_EQ(report.counters.global_store_bytes, 4u * kCount);
  EXPECT_EQ(TakeReport().launches, 0u);
}

TEST_F(DriverLaunchTest, ArgumentsInABuffer) {
  const CUfunction mixed = Various("mixed");
  const CUdeviceptr out = Allocate(8);
  const struct {
    size_t index;
    size_t offset;
    size_t bytes;
  } layout[] = {{0, 0, 1}, {1, 8, 8}, {2, 16, 4}};
  for (const auto& expected : layout) {
    size_t offset = 99;
    size_t bytes = 99;
    ASSAY_EXPECT_SUCCESS(cuFuncGetParamInfo(mixed, expected.index, &offset, &bytes));
    EXPECT_EQ(offset, expected.offset);
    EXPECT_EQ(bytes, expected.bytes);
  }
  size_t offset = 0;
  ASSAY_EXPECT_RESULT(cuFuncGetParamInfo(mixed, 3, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);

  struct {
    uint8_t small = 200;
    CUdeviceptr out = 0;
    float value = 2.5f;
  } buffer;
  buffer.out = out;
  size_t bytes = 20;
  void* const pointer = reinterpret_cast<void*>(cuda::kLaunchParamBufferPointer);
  void* const size = reinterpret_cast<void*>(cuda::kLaunchParamBufferSize);
  void* extra[] = {pointer, &buffer, size, &bytes, nullptr};
  const auto run = [&] {
    return cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
  };
  ASSAY_EXPECT_SUCCESS(run());
  EXPECT_EQ(Download<uint32_t>(out, 1)[0], 200u);
  EXPECT_EQ(Download<float>(out + 4, 1)[0], 2.5f);
  bytes = sizeof buffer;
  ASSAY_EXPECT_SUCCESS(run());
  bytes = 19;
  ASSAY_EXPECT_RESULT(run(), CUDA_ERROR_INVALID_VALUE);
  bytes = 400;
  ASSAY_EXPECT_RESULT(run(), CUDA_ERROR_INVALID_VALUE);
  bytes = 20;
  void* argument = &buffer;
  ASSAY_EXPECT_RESULT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, &argument, extra),
                      CUDA_ERROR_INVALID_VALUE);
  extra[2] = reinterpret_cast<void*>(77);
  ASSAY_EXPECT_RESULT(run(), CUDA_ERROR_INVALID_VALUE);
  extra[2] = nullptr;
  ASSAY_EXPECT_RESULT(run(), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverLaunchTest, WhatADeviceCannotTakeIsRefused) {
  const CUfunction empty = Various("empty");
  const CUfunction limited = Various("limited");
  const CUfunction required = Various("required");
  const CUfunction store = Various("store");
  void* missing = nullptr;
  const struct {
    CUfunction function;
    unsigned int shape[6];
    unsigned int shared;
    void** arguments;
    CUresult expected;
  } cases[] = {
      {empty, {1, 1, 1, 1, 1, 1}, 0, nullptr, CUDA_SUCCESS},
      {empty, {2, 3, 4, 8, 4, 2}, 48 << 10, nullptr, CUDA_SUCCESS},
      {empty, {0, 1, 1, 1, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 1, 0, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1u << 31, 1, 1, 1, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 65536, 1, 1, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 65536, 1, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 1025, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 1, 1, 65}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 32, 33, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 65536, 65536, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 1, 1, 1}, (48 << 10) + 1, nullptr, CUDA_ERROR_INVALID_VALUE},
      {empty, {1, 1, 1, 1, 1, 1}, ~0u, nullptr, CUDA_ERROR_INVALID_VALUE},
      {limited, {1, 1, 1, 64, 1, 1}, 0, nullptr, CUDA_SUCCESS},
      {limited, {1, 1, 1, 65, 1, 1}, 0, nullptr, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
      {required, {1, 1, 1, 32, 2, 1}, 0, nullptr, CUDA_SUCCESS},
      {required, {1, 1, 1, 64, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {store, {1, 1, 1, 1, 1, 1}, 0, nullptr, CUDA_ERROR_INVALID_VALUE},
      {store, {1, 1, 1, 1, 1, 1}, 0, &missing, CUDA_ERROR_INVALID_VALUE},
  };
  for (const auto& test : cases) {
    const unsigned int* const s = test.shape;
    EXPECT_EQ(cuLaunchKernel(test.function, s[0], s[1], s[2], s[3], s[4], s[5], test.shared,
                             nullptr, test.arguments, nullptr),
              test.expected)
        << s[0] << " " << s[1] << " " << s[2] << " " << s[3] << " " << s[4] << " " << s[5] << " + "
        << test.shared;
  }
  ASSAY_EXPECT_SUCCESS(cuCtxSynchronize());
}

TEST_F(DriverLaunchTest, SharedMemoryByOptIn) {
  const CUfunction function = Various("shared_memory");
  int value = 0;
  ASSAY_EXPECT_SUCCESS(
      cuFuncGetAttribute(&value, cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  EXPECT_EQ(value, 1024);
  ASSAY_EXPECT_SUCCESS(
      cuFuncGetAttribute(&value, cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  EXPECT_EQ(value, (48 << 10) - 1024);
  const unsigned int most = (163 << 10) - 1024;
  ASSAY_EXPECT_RESULT(Run(function, 1, 1, {}, most), CUDA_ERROR_INVALID_VALUE);
  const auto allow = [&](unsigned int bytes) {
    return cuFuncSetAttribute(function, cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              static_cast<int>(bytes));
  };
  ASSAY_EXPECT_RESULT(allow(most + 1), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_SUCCESS(allow(most));
  ASSAY_EXPECT_SUCCESS(Run(function, 1, 1, {}, most));
  int blocks = 0;
  ASSAY_EXPECT_SUCCESS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, most));
  EXPECT_EQ(blocks, 1);
  ASSAY_EXPECT_SUCCESS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 1024, 0));
  EXPECT_EQ(blocks, 2);
  int grid = 0;
  int threads = 0;
  ASSAY_EXPECT_SUCCESS(cuOccupancyMaxPotentialBlockSize(&grid, &threads, function, nullptr, 0, 0));
  EXPECT_EQ(threads, 1024);
  EXPECT_EQ(grid, 2 * static_cast<int>(kMultiprocessors));
}

TEST_F(DriverLaunchTest, CooperativeLaunchesMustFit) {
  const CUfunction empty = Various("empty");
  const unsigned int most = 2 * kMultiprocessors;
  ASSAY_EXPECT_SUCCESS(
      cuLaunchCooperativeKernel(empty, most, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  ASSAY_EXPECT_RESULT(
      cuLaunchCooperativeKernel(empty, most + 1, 1, 1, 1024, 1, 1, 0, nullptr, nullptr),
      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  ASSAY_EXPECT_SUCCESS(Run(empty, most + 1, 1024, {}));

  cuda::CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config = {most + 1, 1, 1, 1024, 1, 1, 0, nullptr, attributes, 2};
  ASSAY_EXPECT_SUCCESS(cuLaunchKernelEx(&config, empty, nullptr, nullptr));
  attributes[1].id = cuda::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[1].value.cooperative = 1;
  ASSAY_EXPECT_RESULT(cuLaunchKernelEx(&config, empty, nullptr, nullptr),
                      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  attributes[1].id = cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {2, 1, 1};
  ASSAY_EXPECT_RESULT(cuLaunchKernelEx(&config, empty, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  attributes[1].value.clusterDim = {1, 1, 1};
  ASSAY_EXPECT_SUCCESS(cuLaunchKernelEx(&config, empty, nullptr, nullptr));
  config.attrs = nullptr;
  ASSAY_EXPECT_RESULT(cuLaunchKernelEx(&config, empty, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_RESULT(cuLaunchKernelEx(nullptr, empty, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverLaunchTest, FaultsStickToTheContext) {
  const struct {
    const char* kernel;
    uint64_t offset;  // of the 16 bytes that the kernel gets the address of
    bool freed;
    CUresult expected;
    const char* kind;
  } cases[] = {
      {"store", 16, false, CUDA_ERROR_ILLEGAL_ADDRESS, "OUT_OF_BOUNDS"},
      {"load", uint64_t{0} - 4, false, CUDA_ERROR_ILLEGAL_ADDRESS, "OUT_OF_BOUNDS"},
      {"store", 0, true, CUDA_ERROR_ILLEGAL_ADDRESS, "USE_AFTER_FREE"},
      {"store", 2, false, CUDA_ERROR_MISALIGNED_ADDRESS, "MISALIGNED"},
      {"stop", 0, false, CUDA_ERROR_LAUNCH_FAILED, "TRAP"},
      {"spin", 0, false, CUDA_ERROR_LAUNCH_TIMEOUT, "INSTRUCTION_BUDGET"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(absl::StrCat(test.kernel, " ", test.kind));
    const CUdeviceptr buffer = Upload(std::vector<uint32_t>(4));
    CUdeviceptr at = buffer + test.offset;
    const CUfunction function = Various(test.kernel);
    if (test.freed) {
      ASSAY_EXPECT_SUCCESS(cuMemFree_v2(buffer));
    }
    EXPECT_EQ(Run(function, 1, 1, {&at}), test.expected);
    // From now on everything in the context fails in the same way.
    CUdeviceptr address = 0;
    int value = 0;
    EXPECT_EQ(cuCtxSynchronize(), test.expected);
    EXPECT_EQ(cuMemAlloc_v2(&address, 8), test.expected);
    EXPECT_EQ(cuMemcpyDtoH_v2(&value, buffer, 4), test.expected);
    EXPECT_EQ(Run(function, 1, 1, {&at}), test.expected);
    EXPECT_EQ(cuStreamSynchronize(nullptr), test.expected);
    const TakenReport report = TakeReport();
    EXPECT_EQ(report.launches, 1u);
    EXPECT_EQ(report.launches_stopped, 1u);
    ASSERT_EQ(report.faults.size(), 1u);
    EXPECT_EQ(report.faults[0].kind, test.kind);
    EXPECT_EQ(report.faults[0].kernel, test.kernel);
    EXPECT_GT(report.faults[0].ptx_line, 0);
    EXPECT_NE(report.last_error.find(test.kernel), std::string::npos) << report.last_error;
    NewContext();
    ASSAY_EXPECT_SUCCESS(cuCtxSynchronize());
  }
}

// A launch that ends within its instructions, and uses up the CPU time of itself and those before.
TEST_F(DriverLaunchTest, LaunchesShareABudgetOfCpuTime) {
  cuda::AssayEmulatorOptions options = PlainOptions();
  const CUfunction count = Various("count");
  options.cpu_ns_max = uint64_t{1} << 62;
  ASSAY_EXPECT_SUCCESS(assayEmulatorConfigure(&options));
  ASSAY_EXPECT_SUCCESS(Run(count, 1, 1, {}));
  {
    State& state = State::Get();
    const absl::MutexLock lock(&state.mutex);
    EXPECT_LT(state.settings.cpu_ns_left, int64_t{1} << 62) << "the launch was not charged";
    state.settings.cpu_ns_left = 0;
  }
  EXPECT_EQ(Run(count, 1, 1, {}), CUDA_ERROR_LAUNCH_TIMEOUT);
  TakenReport report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].kind, "TIME_BUDGET");
  EXPECT_EQ(report.faults[0].kernel, "count");
  EXPECT_EQ(report.launches_stopped, 1u);
  NewContext();
  // Configuring renews it.
  options.cpu_ns_max = 0;
  ASSAY_EXPECT_SUCCESS(assayEmulatorConfigure(&options));
  ASSAY_EXPECT_SUCCESS(Run(Various("count"), 1, 1, {}));
  options.cpu_ns_max = uint64_t{1} << 63;
  ASSAY_EXPECT_RESULT(assayEmulatorConfigure(&options), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverLaunchTest, FaultsThatADeviceSurvivesAreOnlyReported) {
  const CUfunction load = Various("load");
  CUdeviceptr at = Allocate(16);
  ASSAY_EXPECT_SUCCESS(Run(load, 1, 1, {&at}));
  TakenReport report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].kind, "UNINITIALIZED_READ");
  EXPECT_EQ(report.faults[0].space, "global");
  EXPECT_EQ(report.launches_stopped, 0u);

  ASSAY_EXPECT_SUCCESS(cuMemsetD32_v2(at, 1, 4));
  ASSAY_EXPECT_SUCCESS(Run(load, 1, 1, {&at}));
  EXPECT_TRUE(TakeReport().faults.empty());
}

TEST_F(DriverLaunchTest, InputsKeepTheirBytesAndNames) {
  CUdeviceptr at = Upload(std::vector<uint32_t>{1, 2, 3});
  ASSAY_EXPECT_SUCCESS(assayEmulatorSetBuffer(at, cuda::kAssayEmulatorInput, "weights\x1b[2J"));
  ASSAY_EXPECT_RESULT(Run(Various("store"), 1, 1, {&at}), CUDA_ERROR_ILLEGAL_ADDRESS);
  const TakenReport report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].kind, "INPUT_WRITTEN");
  EXPECT_NE(report.faults[0].message.find("weights"), std::string::npos)
      << report.faults[0].message;
  EXPECT_EQ(report.faults[0].message.find('\x1b'), std::string::npos);
}

TEST_F(DriverLaunchTest, VariablesAreFoundAndReset) {
  const CUmodule module = Load(kVarious);
  CUfunction count = nullptr;
  ASSAY_EXPECT_SUCCESS(cuModuleGetFunction(&count, module, "count"));
  CUdeviceptr address = 0;
  size_t bytes = 0;
  ASSAY_EXPECT_SUCCESS(cuModuleGetGlobal_v2(&address, &bytes, module, "counter"));
  EXPECT_EQ(bytes, 4u);
  ASSAY_EXPECT_SUCCESS(Run(count, 1, 1, {}));
  ASSAY_EXPECT_SUCCESS(Run(count, 1, 1, {}));
  EXPECT_EQ(Download<uint32_t>(address, 1)[0], 9u);
  ASSAY_EXPECT_SUCCESS(assayEmulatorResetVariables(module));
  EXPECT_EQ(Download<uint32_t>(address, 1)[0], 7u);
  ASSAY_EXPECT_RESULT(cuModuleGetGlobal_v2(&address, &bytes, module, "nothing"),
                      CUDA_ERROR_NOT_FOUND);
  ASSAY_EXPECT_RESULT(cuModuleGetGlobal_v2(&address, &bytes, module, nullptr),
                      CUDA_ERROR_INVALID_VALUE);
  ASSAY_EXPECT_SUCCESS(cuModuleUnload(module));
  ASSAY_EXPECT_RESULT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  ASSAY_EXPECT_RESULT(Run(count, 1, 1, {}), CUDA_ERROR_INVALID_HANDLE);
  ASSAY_EXPECT_RESULT(assayEmulatorResetVariables(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverLaunchTest, UnknownOpcodesAreNamed) {
  const CUmodule module = Load(kUnknownOpcode);
  CUfunction function = nullptr;
  ASSAY_EXPECT_SUCCESS(cuModuleGetFunction(&function, module, "fine"));
  ASSAY_EXPECT_SUCCESS(Run(function, 1, 1, {}));
  ASSAY_EXPECT_RESULT(cuModuleGetFunction(&function, module, "strange"), CUDA_ERROR_NOT_SUPPORTED);
  const std::string message = TakeReport().last_error;
  EXPECT_NE(message.find("frobnicate"), std::string::npos) << message;
  EXPECT_NE(message.find("strange"), std::string::npos) << message;
  ASSAY_EXPECT_RESULT(cuModuleGetFunction(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
  unsigned int count = 0;
  ASSAY_EXPECT_SUCCESS(cuModuleGetFunctionCount(&count, module));
  EXPECT_EQ(count, 2u);
}

TEST_F(DriverLaunchTest, LogsSayWhatIsWrong) {
  const struct {
    std::string ptx;
    CUresult expected;
    const char* in_log;
  } cases[] = {
      {"", CUDA_ERROR_INVALID_PTX, ""},
      {"this is no PTX", CUDA_ERROR_INVALID_PTX, "line 1"},
      {".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( { ret; }\n",
       CUDA_ERROR_INVALID_PTX, "line 4"},
      {".version 9.9\n.target sm_80\n.address_size 64\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
       "9.9"},
      {".version 8.0\n.target sm_90\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "sm_90"},
      {".version 8.0\n.target sm_75\n.address_size 64\n", CUDA_SUCCESS, ""},
  };
  for (const auto& test : cases) {
    char error[256] = "unchanged";
    char info[16] = "unchanged";
    cuda::CUjit_option options[] = {
        cuda::CU_JIT_ERROR_LOG_BUFFER, cuda::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        cuda::CU_JIT_INFO_LOG_BUFFER, cuda::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        cuda::CU_JIT_LOG_VERBOSE};
    void* values[] = {error, reinterpret_cast<void*>(sizeof error), info,
                      reinterpret_cast<void*>(sizeof info), reinterpret_cast<void*>(1)};
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadDataEx(&module, test.ptx.c_str(), 5, options, values), test.expected)
        << test.ptx;
    EXPECT_NE(std::string(error).find(test.in_log), std::string::npos) << error;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(values[1]), std::strlen(error));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(values[3]), std::strlen(info));
    EXPECT_EQ(std::strlen(info), test.expected == CUDA_SUCCESS ? 15u : 0u) << "cut to its buffer";
  }
  CUmodule module = nullptr;
  ASSAY_EXPECT_RESULT(cuModuleLoadDataEx(&module, kVectorAdd, 1, nullptr, nullptr),
                      CUDA_ERROR_INVALID_VALUE);
  auto option = static_cast<cuda::CUjit_option>(9999);
  void* value = nullptr;
  ASSAY_EXPECT_RESULT(cuModuleLoadDataEx(&module, kVectorAdd, 1, &option, &value),
                      CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverLaunchTest, LibrariesLoadIntoEveryContext) {
  CUlibrary library = nullptr;
  ASSAY_EXPECT_SUCCESS(
      cuLibraryLoadData(&library, kVarious, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  ASSAY_EXPECT_RESULT(cuLibraryGetKernel(&kernel, library, "absent"), CUDA_ERROR_NOT_FOUND);
  ASSAY_EXPECT_SUCCESS(cuLibraryGetKernel(&kernel, library, "count"));
  const auto counter = [&] {
    CUdeviceptr address = 0;
    ASSAY_EXPECT_SUCCESS(cuLibraryGetGlobal(&address, nullptr, library, "counter"));
    return Download<uint32_t>(address, 1)[0];
  };
  CUfunction function = nullptr;
  ASSAY_EXPECT_SUCCESS(cuKernelGetFunction(&function, kernel));
  ASSAY_EXPECT_SUCCESS(Run(function, 1, 1, {}));
  // A kernel may stand for its function.
  ASSAY_EXPECT_SUCCESS(Run(reinterpret_cast<CUfunction>(kernel), 1, 1, {}));
  EXPECT_EQ(counter(), 9u);
  NewContext();
  ASSAY_EXPECT_RESULT(Run(function, 1, 1, {}), CUDA_ERROR_INVALID_HANDLE);
  ASSAY_EXPECT_SUCCESS(Run(reinterpret_cast<CUfunction>(kernel), 1, 1, {}));
  EXPECT_EQ(counter(), 8u);
  CUmodule module = nullptr;
  ASSAY_EXPECT_SUCCESS(cuLibraryGetModule(&module, library));
  ASSAY_EXPECT_RESULT(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
  ASSAY_EXPECT_SUCCESS(cuLibraryUnload(library));
  ASSAY_EXPECT_RESULT(Run(reinterpret_cast<CUfunction>(kernel), 1, 1, {}),
                      CUDA_ERROR_INVALID_HANDLE);
  ASSAY_EXPECT_RESULT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace assay::emulator::exported
