#include "tests/bench/emulator_kernels.h"

#include <time.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "emulator/memory/device_memory.h"

namespace assay::bench {
namespace {

using emulator::DeviceMemory;

constexpr int kSide = 512;   // of the matrices
constexpr int kRows = 1024;  // and columns
constexpr double kErrorMax = 1e-4;

double Seconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Numbers from -1 to 1.
std::vector<float> Numbers(size_t count, uint64_t seed) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = MixBits(seed + kGoldenGamma * (i + 1));
    numbers[i] = static_cast<float>(static_cast<double>(bits >> 40) / (1 << 23) - 1);
  }
  return numbers;
}

absl::StatusOr<uint64_t> Put(const std::string& name, const std::vector<float>& values,
                             DeviceMemory* memory) {
  const size_t bytes = values.size() * sizeof(float);
  ASSAY_ASSIGN_OR_RETURN(const uint64_t address, memory->Allocate(bytes, name));
  ASSAY_ASSIGN_OR_RETURN(std::byte* const host, memory->Range(address, bytes));
  std::memcpy(host, values.data(), bytes);
  ASSAY_RETURN_IF_ERROR(memory->SetInitialized(address, bytes, true));
  ASSAY_RETURN_IF_ERROR(memory->SetRole(address, emulator::Role::kInput));
  return address;
}

// The tensors of a problem as the candidates take them: inputs, the output, the axes.
struct Tensors {
  std::vector<std::pair<std::string, std::vector<float>>> inputs;
  size_t outputs = 0;
  std::vector<int32_t> axes;
};

Tensors MakeTensors(BenchProblem problem) {
  constexpr size_t kMatrix = size_t{kSide} * kSide;
  constexpr size_t kTable = size_t{kRows} * kRows;
  switch (problem) {
    case BenchProblem::kGemm:
      return {
          {{"a", Numbers(kMatrix, 1)}, {"b", Numbers(kMatrix, 2)}}, kMatrix, {kSide, kSide, kSide}};
    case BenchProblem::kSoftmax:
      return {{{"x", Numbers(kTable, 1)}}, kTable, {kRows}};
    case BenchProblem::kLayernorm:
      return {
          {{"x", Numbers(kTable, 1)}, {"gamma", Numbers(kRows, 2)}, {"beta", Numbers(kRows, 3)}},
          kTable,
          {kRows}};
  }
  return {};
}

// One element of the result, computed in double precision.
double Expected(BenchProblem problem, const Tensors& tensors, size_t row, size_t col) {
  const std::vector<float>& x = tensors.inputs[0].second;
  double sum = 0;
  if (problem == BenchProblem::kGemm) {
    const std::vector<float>& b = tensors.inputs[1].second;
    for (size_t p = 0; p < kSide; ++p) sum += double{x[row * kSide + p]} * b[p * kSide + col];
    return sum;
  }
  const float* const of_row = x.data() + row * kRows;
  if (problem == BenchProblem::kSoftmax) {
    for (size_t j = 0; j < kRows; ++j) sum += std::exp(double{of_row[j]});
    return std::exp(double{of_row[col]}) / sum;
  }
  double squares = 0;
  for (size_t j = 0; j < kRows; ++j) {
    sum += of_row[j];
    squares += double{of_row[j]} * of_row[j];
  }
  const double mean = sum / kRows;
  const double variance = squares / kRows - mean * mean;
  return (of_row[col] - mean) / std::sqrt(variance + 1e-5) * tensors.inputs[1].second[col] +
         tensors.inputs[2].second[col];
}

absl::Status CheckResult(const BenchKernel& kernel, const Tensors& tensors, const float* result) {
  const size_t side = kernel.problem == BenchProblem::kGemm ? kSide : kRows;
  for (size_t i = 0; i < 512; ++i) {
    const size_t row = i * 37 % side;
    const size_t col = i * 101 % side;
    const double expected = Expected(kernel.problem, tensors, row, col);
    const double found = result[row * side + col];
    if (!(std::fabs(found - expected) <= kErrorMax)) {
      return absl::InternalError(absl::StrCat(kernel.name, ": element (", row, ", ", col, ") is ",
                                              found, ", not ", expected));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<BenchKernel> BenchKernels() {
  constexpr BenchProblem kGemm = BenchProblem::kGemm;
  constexpr BenchProblem kSoftmax = BenchProblem::kSoftmax;
  constexpr BenchProblem kLayernorm = BenchProblem::kLayernorm;
  constexpr uint32_t kRowBytes = kRows * sizeof(float);
  return {
      {"sgemm_512_plain", kGemm, "gemm_f32", "cuda_plain.cu", {}, {32, 32, 1}, {16, 16, 1}, 0, 5},
      {"sgemm_512_tiled",
       kGemm,
       "gemm_f32",
       "cuda_tiled.cu",
       {{"TILE", 32}},
       {16, 16, 1},
       {32, 32, 1},
       0,
       2},
      {"sgemm_512_register_tile",
       kGemm,
       "gemm_f32",
       "cuda_register_tile.cu",
       {{"TILE", 64}, {"DEPTH", 16}},
       {8, 8, 1},
       {256, 1, 1},
       0,
       1.5},
      {"softmax_1m_plain",
       kSoftmax,
       "softmax",
       "cuda_plain.cu",
       {},
       {kRows, 1, 1},
       {256, 1, 1},
       0,
       1},
      {"softmax_1m",
       kSoftmax,
       "softmax",
       "cuda_online.cu",
       {{"BLOCK", 256}},
       {kRows, 1, 1},
       {256, 1, 1},
       0,
       1},
      {"layernorm_1m_plain",
       kLayernorm,
       "layernorm",
       "cuda_plain.cu",
       {},
       {kRows, 1, 1},
       {256, 1, 1},
       0,
       1},
      {"layernorm_1m",
       kLayernorm,
       "layernorm",
       "cuda_row_in_shared.cu",
       {{"BLOCK", 256}, {"ROW_MAX", 8192}},
       {kRows, 1, 1},
       {256, 1, 1},
       kRowBytes,
       1},
  };
}

absl::StatusOr<BenchRun> RunBenchKernel(const BenchKernel& kernel, std::string_view ptx,
                                        int threads) {
  DeviceMemory::Options device;
  device.bytes = 64 << 20;
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory, DeviceMemory::Create(device));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<emulator::LoadedModule> module,
                         emulator::LoadedModule::Load(ptx, memory.get(), 80));
  ASSAY_ASSIGN_OR_RETURN(const emulator::Program* const program, module->Kernel(kernel.kernel));
  const Tensors tensors = MakeTensors(kernel.problem);
  std::vector<std::byte> arguments;
  const auto add = [&](const auto& value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    arguments.insert(arguments.end(), bytes, bytes + sizeof(value));
  };
  for (const auto& [name, values] : tensors.inputs) {
    ASSAY_ASSIGN_OR_RETURN(const uint64_t address, Put(name, values, memory.get()));
    add(address);
  }
  const size_t bytes = tensors.outputs * sizeof(float);
  ASSAY_ASSIGN_OR_RETURN(const uint64_t output, memory->Allocate(bytes, "output"));
  add(output);
  for (const int32_t axis : tensors.axes) add(axis);

  emulator::LaunchOptions options;
  options.grid = kernel.grid;
  options.block = kernel.block;
  options.threads = threads;
  options.dynamic_shared_bytes = kernel.dynamic_shared_bytes;
  BenchRun run;
  const double cpu = Seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double wall = Seconds(CLOCK_MONOTONIC);
  ASSAY_ASSIGN_OR_RETURN(const emulator::LaunchResult result,
                         emulator::Launch(*program, arguments, options, memory.get()));
  run.cpu_seconds = Seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  run.wall_seconds = Seconds(CLOCK_MONOTONIC) - wall;
  run.lane_instructions = result.counters.thread_instructions;
  if (!result.faults.empty()) {
    return absl::InternalError(absl::StrCat(kernel.name, ": ", result.faults[0].message));
  }
  ASSAY_ASSIGN_OR_RETURN(const std::byte* const host, memory->Range(output, bytes));
  ASSAY_RETURN_IF_ERROR(CheckResult(kernel, tensors, reinterpret_cast<const float*>(host)));
  return run;
}

}  // namespace assay::bench
