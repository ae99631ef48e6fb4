// assay-gpu-check: holds a GPU against the emulated device, and measures its ceilings.
// scripts/gpu_check starts it; options are in gpu_check.h.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/gpu/gpu_check.h"

int main(int argc, char** argv) {
  const std::string binaries =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  absl::StatusOr<assay::GpuCheckOptions> options =
      assay::ParseGpuCheckArguments(std::vector<std::string>(argv + 1, argv + argc), binaries);
  absl::StatusOr<int> code = options.ok() ? assay::RunGpuCheck(*options) : options.status();
  if (code.ok()) return *code;
  std::fprintf(stderr, "gpu_check: %s\n", std::string(code.status().message()).c_str());
  return 2;
}
