// Measures the emulated device for scripts/bench_emulator: shipped CUDA candidates with every check
// on, on one and two host threads, and how long NVRTC takes to build them.
//
//   assay-bench-emulator --helper PATH_OF_ASSAY_NVRTC [--rounds 3] [--only PART]
//
// prints one JSON object a line. Where NVRTC is not installed it says so and exits with 2.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "tests/bench/emulator_kernels.h"
#include "worker/builder/cuda_builder.h"

namespace assay::bench {
namespace {

struct Options {
  std::string helper;
  std::string only;
  int rounds = 3;
};

enum class Reach { kNone, kAtLeast, kAtMost };

void PrintFigure(const std::string& figure, double value, const std::string& unit, Reach kind,
                 double reach, const std::string& detail) {
  std::string line = absl::StrFormat("{\"figure\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"",
                                     figure, value, unit);
  if (kind != Reach::kNone) {
    const bool ok = kind == Reach::kAtLeast ? value >= reach : value <= reach;
    absl::StrAppendFormat(&line, ", \"reach\": %.4g, \"ok\": %s", reach, ok ? "true" : "false");
  }
  std::cout << line << ", \"detail\": \"" << detail << "\"}" << std::endl;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::StatusOr<BuildResult> BuildSource(
    Builder* builder, std::string source,
    const std::vector<std::pair<std::string, int64_t>>& macros) {
  BuildRequest request;
  request.files = {{"kernel.cu", std::move(source)}};
  request.sources = {"kernel.cu"};
  request.macros = macros;
  ASSAY_ASSIGN_OR_RETURN(BuildResult result, builder->Build(request));
  if (!result.ok) return absl::InternalError(absl::StrCat("does not compile: ", result.log));
  return result;
}

// Builds of sources that no build before had, with what NVRTC keeps of headers at hand.
absl::Status MeasureBuilds(Builder* builder, int rounds) {
  struct Case {
    const char* name;
    const char* text;
    double reach_ms;
  };
  constexpr Case kCases[] = {
      {"nvrtc_build_no_headers", "", 70},
      {"nvrtc_build_cuda_fp16", "#include <cuda_fp16.h>\n", 100},
      {"nvrtc_build_mma", "#include <mma.h>\n", 170},
  };
  constexpr int kWarmups = 3;
  const uint64_t run = SecureRandom64();
  for (const Case& c : kCases) {
    std::vector<double> compiler, whole;
    bool precompiled = false;
    for (int i = 0; i < kWarmups + 4 * rounds; ++i) {
      const std::string source = absl::StrCat(
          c.text,
          "extern \"C\" __global__ void saxpy(float a, const float* x, float* y, int n) {\n",
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] += a * "
          "x[i];\n}\n// ",
          run, " ", i, "\n");
      ASSAY_ASSIGN_OR_RETURN(const BuildResult result, BuildSource(builder, source, {}));
      if (i < kWarmups) continue;
      compiler.push_back(absl::ToDoubleMilliseconds(result.compiler_duration));
      whole.push_back(absl::ToDoubleMilliseconds(result.duration));
      precompiled = result.precompiled_headers;
    }
    PrintFigure(c.name, Median(compiler), "ms", Reach::kAtMost, c.reach_ms,
                absl::StrFormat("in the build sandbox, %s; median of %d new sources; with the "
                                "sandbox and ptxas's report %.0f ms",
                                precompiled ? "precompiled headers" : "no precompiled headers",
                                compiler.size(), Median(whole)));
  }
  return absl::OkStatus();
}

struct Times {
  std::vector<double> cpu;
  std::vector<double> wall;
  double lanes = 0;
};

// One and two host threads in turns, so that both meet the same machine.
absl::Status MeasureKernel(const BenchKernel& kernel, std::string_view ptx, int rounds) {
  Times times[2];
  for (int round = 0; round < rounds; ++round) {
    for (int threads = 1; threads <= 2; ++threads) {
      ASSAY_ASSIGN_OR_RETURN(const BenchRun run, RunBenchKernel(kernel, ptx, threads));
      Times& t = times[threads - 1];
      t.cpu.push_back(run.cpu_seconds);
      t.wall.push_back(run.wall_seconds);
      t.lanes = static_cast<double>(run.lane_instructions);
    }
  }
  const double cpu = Median(times[0].cpu);
  PrintFigure(
      kernel.name, cpu, "s", Reach::kAtMost, kernel.seconds_max,
      absl::StrFormat("CPU time of one thread, every check on, median of %d; wall %.3g s; "
                      "two threads: wall %.3g s, CPU %.3g s",
                      rounds, Median(times[0].wall), Median(times[1].wall), Median(times[1].cpu)));
  const bool measured = absl::StrContains(kernel.name, "register_tile");
  PrintFigure(
      kernel.name + "_rate", times[0].lanes / cpu / 1e9, "G lane-instructions/s",
      measured ? Reach::kAtLeast : Reach::kNone, 0.8,
      absl::StrFormat("%.1f M lane-instructions, one thread, CPU time", times[0].lanes / 1e6));
  PrintFigure(kernel.name + "_two_cores", 2 * cpu / Median(times[1].cpu), "ratio",
              measured ? Reach::kAtLeast : Reach::kNone, 1.8,
              absl::StrFormat("work a second of two threads over one, by CPU time; by wall time "
                              "%.2f, which only an idle machine shows",
                              Median(times[0].wall) / Median(times[1].wall)));
  return absl::OkStatus();
}

absl::StatusOr<std::string> BuildKernel(Builder* builder, const BenchKernel& kernel) {
  const char* const root = std::getenv("ASSAY_SOURCE_DIR");
  const std::string path = absl::StrCat(root == nullptr ? "." : root, "/kernels/problems/",
                                        kernel.kernel, "/candidates/", kernel.candidate);
  ASSAY_ASSIGN_OR_RETURN(std::string source, ReadFile(path, limits::kArtifactBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const BuildResult built,
                         BuildSource(builder, std::move(source), kernel.macros));
  return ReadFile(built.artifact_path, limits::kArtifactBytesMax);
}

absl::Status Measure(const Options& options) {
  ASSAY_ASSIGN_OR_RETURN(const TemporaryDirectory directory,
                         TemporaryDirectory::Create("assay-bench-emulator"));
  if (chmod(directory.path().c_str(), 0755) != 0) return absl::InternalError("chmod");
  CudaBuilderOptions builder_options;
  builder_options.cache_directory = directory.path() + "/cache";
  builder_options.helper = options.helper;
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Builder> builder, MakeCudaBuilder(builder_options));
  if (options.only.empty() || options.only == "nvrtc") {
    ASSAY_RETURN_IF_ERROR(MeasureBuilds(builder.get(), options.rounds));
  }
  for (const BenchKernel& kernel : BenchKernels()) {
    if (!options.only.empty() && options.only != kernel.name) continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string ptx, BuildKernel(builder.get(), kernel));
    ASSAY_RETURN_IF_ERROR(MeasureKernel(kernel, ptx, options.rounds));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[++i] : "";
    bool ok = !value.empty();
    if (flag == "--helper") {
      options.helper = value;
    } else if (flag == "--only") {
      options.only = value;
    } else if (flag == "--rounds") {
      ok = absl::SimpleAtoi(value, &options.rounds) && options.rounds > 0;
    } else {
      ok = false;
    }
    if (!ok) {
      std::cerr << "assay-bench-emulator: bad flag " << flag << "\n";
      return 2;
    }
  }
  const absl::Status status = assay::bench::Measure(options);
  if (status.ok()) return 0;
  std::cerr << "assay-bench-emulator: " << status.message() << "\n";
  return 2;
}
