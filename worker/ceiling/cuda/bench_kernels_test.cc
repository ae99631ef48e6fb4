// Every microbenchmark on the emulated device, with every check on: it has no fault, and does
// exactly what it claims.
#include "worker/ceiling/cuda/bench_kernels.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/ceiling/cuda/bench_device.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int kArchs[] = {75, 80, 86, 89, 90, 100, 120};
constexpr BenchShape kTiny = {3, 64, 2, 2};

std::unique_ptr<CudaDriver> EmulatedDriver() {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  auto driver = CudaDriver::Load(
      absl::StrCat(folder == nullptr ? "." : folder, "/libassay_emulated_cuda.so"));
  EXPECT_OK(driver);
  return driver.ok() ? *std::move(driver) : nullptr;
}

void Configure(const CudaDriver& driver, int arch) {
  cuda::AssayEmulatorOptions options = {};
  options.struct_bytes = sizeof options;
  options.arch = static_cast<uint32_t>(arch);
  options.check_races = 1;
  options.device_bytes = 64 << 20;
  EXPECT_EQ(driver.emulator().assayEmulatorConfigure(&options), cuda::CUDA_SUCCESS);
}

struct Report {
  cuda::AssayEmulatorCounters counters = {};
  uint64_t launches = 0;
  std::vector<std::string> faults;
};

Report TakeReport(const CudaDriver& driver) {
  Report taken;
  const auto copy = [](void* user, const cuda::AssayEmulatorReport* report) {
    auto* const to = static_cast<Report*>(user);
    to->counters = report->counters;
    to->launches = report->launches;
    for (uint64_t i = 0; i < report->fault_count; ++i) {
      to->faults.push_back(
          absl::StrCat(report->faults[i].kind_name, " ", report->faults[i].message));
    }
  };
  EXPECT_EQ(driver.emulator().assayEmulatorTakeReport(copy, &taken), cuda::CUDA_SUCCESS);
  return taken;
}

void ExpectDoesWhatItClaims(const CudaDriver& driver, BenchDevice* device,
                            const BenchKernel& kernel, const BenchShape& shape) {
  SCOPED_TRACE(absl::StrCat(kernel.name, " ", kernel.variant));
  TakeReport(driver);
  ASSERT_OK(device->Run(kernel, shape));
  const Report report = TakeReport(driver);
  EXPECT_THAT(report.faults, SizeIs(0)) << report.faults[0];
  EXPECT_EQ(report.launches, 1u);
  const BenchWork work = WorkOf(kernel, shape);
  EXPECT_EQ(report.counters.f16_flops, work.f16_operations);
  EXPECT_EQ(report.counters.f32_flops, work.f32_operations);
  EXPECT_EQ(report.counters.f64_flops, work.f64_operations);
  EXPECT_EQ(report.counters.tensor_flops, work.tensor_operations);
  EXPECT_EQ(report.counters.global_load_bytes, work.read_bytes);
  EXPECT_EQ(report.counters.global_store_bytes, work.written_bytes);
  // Neighbours touch neighbouring bytes: no more sectors than bytes need.
  EXPECT_EQ(report.counters.global_sectors, report.counters.global_sectors_least);
  EXPECT_EQ(report.counters.divergent_branches, 0u);
}

TEST(BenchKernelsTest, EveryKernelDoesWhatItClaimsOnEveryArchitecture) {
  const std::unique_ptr<CudaDriver> driver = EmulatedDriver();
  ASSERT_NE(driver, nullptr);
  for (const int arch : kArchs) {
    SCOPED_TRACE(absl::StrCat("sm_", arch));
    Configure(*driver, arch);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BenchDevice> device,
                         BenchDevice::Open(driver.get(), 0));
    EXPECT_EQ(device->facts().arch, arch);
    EXPECT_GT(device->facts().multiprocessors, 0);
    for (const StreamKind kind : kStreamKinds) {
      for (const int vector_bytes : kStreamVectorBytes) {
        for (const int unroll : kStreamUnrolls) {
          ExpectDoesWhatItClaims(*driver, device.get(), StreamBench(kind, vector_bytes, unroll),
                                 kTiny);
        }
      }
    }
    BenchShape shape = kTiny;
    shape.passes = 1;
    for (const BenchKernel& kernel : ComputeBenchesOf(arch).kernels) {
      ExpectDoesWhatItClaims(*driver, device.get(), kernel, shape);
      EXPECT_GT(WorkOf(kernel, shape).operations(), 0u);
    }
    ExpectDoesWhatItClaims(*driver, device.get(), DelayBench(), shape);
    ExpectDoesWhatItClaims(*driver, device.get(), EmptyBench(), shape);
  }
}

TEST(BenchKernelsTest, AnEmulatedDeviceGivesNoTimes) {
  const std::unique_ptr<CudaDriver> driver = EmulatedDriver();
  ASSERT_NE(driver, nullptr);
  Configure(*driver, 80);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BenchDevice> device,
                       BenchDevice::Open(driver.get(), 0));
  EXPECT_THAT(device->Time(EmptyBench(), BenchShape{}, 1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no times")));
  EXPECT_THAT(BenchDevice::Open(driver.get(), 7), Not(IsOk()));
}

TEST(BenchKernelsTest, AnArrayThatDoesNotFitIsRefused) {
  const std::unique_ptr<CudaDriver> driver = EmulatedDriver();
  ASSERT_NE(driver, nullptr);
  Configure(*driver, 80);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BenchDevice> device,
                       BenchDevice::Open(driver.get(), 0));
  const BenchKernel triad = StreamBench(StreamKind::kTriad, 16, 4);
  EXPECT_THAT(device->Run(triad, {1024, 1024, 1024, 1}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("3 arrays")));
  // What fits still runs.
  EXPECT_OK(device->Run(triad, kTiny));
}

TEST(BenchKernelsTest, ClaimsGrowWithTheShape) {
  const BenchKernel copy = StreamBench(StreamKind::kCopy, 8, 4);
  const BenchShape shape = {5, 128, 7, 3};
  // Four accesses of eight bytes a round.
  EXPECT_EQ(StreamArrayBytes(copy, shape), 5u * 128 * 7 * 32);
  EXPECT_EQ(WorkOf(copy, shape).read_bytes, 5u * 128 * 7 * 32 * 3);
  EXPECT_EQ(WorkOf(copy, shape).written_bytes, 5u * 128 * 7 * 32 * 3);
  const BenchKernel triad = StreamBench(StreamKind::kTriad, 16, 4);
  EXPECT_EQ(WorkOf(triad, shape).bytes(), 3u * 5 * 128 * 7 * 64 * 3);
  EXPECT_EQ(WorkOf(triad, shape).f32_operations, 2u * 5 * 128 * 7 * 16 * 3);
}

TEST(BenchKernelsTest, SaysWhatAnArchitectureLacks) {
  const struct {
    int arch;
    std::vector<std::string> has;
    std::vector<std::string> lacks;
  } rows[] = {
      {75,
       {"mma_f16", "mma_int8"},
       {"mma_bf16: sm_75 has none", "mma_tf32: sm_75 has none", "mma_f64: sm_75 has none"}},
      {80, {"mma_f16", "mma_f16_acc_f16", "mma_bf16", "mma_tf32", "mma_int8", "mma_f64"}, {}},
      {90, {"mma_f16", "mma_f64"}, {"wgmma: "}},
      {100, {"mma_bf16", "mma_f64"}, {"tcgen05.mma: "}},
      {120, {"mma_bf16", "mma_f64"}, {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.arch);
    const ComputeBenches benches = ComputeBenchesOf(row.arch);
    std::vector<std::string> names;
    for (const BenchKernel& kernel : benches.kernels) names.push_back(kernel.name);
    for (const char* const always : {"fma_f32", "fma_f64", "fma_f16"}) {
      EXPECT_THAT(names, Contains(always));
    }
    for (const std::string& name : row.has) EXPECT_THAT(names, Contains(name));
    EXPECT_EQ(benches.left_out.size(), row.lacks.size());
    for (const std::string& text : row.lacks) {
      EXPECT_THAT(benches.left_out, Contains(StartsWith(text)));
    }
  }
}

// Else two kernels would stand for different things under one name, or one would be measured twice.
TEST(BenchKernelsTest, VariantsOfOneNameFollowEachOtherAndDiffer) {
  for (const int arch : kArchs) {
    const ComputeBenches benches = ComputeBenchesOf(arch);
    for (size_t i = 0; i < benches.kernels.size(); ++i) {
      for (size_t j = i + 1; j < benches.kernels.size(); ++j) {
        const BenchKernel& a = benches.kernels[i];
        const BenchKernel& b = benches.kernels[j];
        EXPECT_NE(a.ptx, b.ptx);
        if (a.name != b.name) continue;
        EXPECT_NE(a.variant, b.variant);
        EXPECT_EQ(benches.kernels[j - 1].name, b.name) << "sm_" << arch;
      }
    }
  }
}

}  // namespace
}  // namespace assay
