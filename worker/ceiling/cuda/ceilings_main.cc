// assay-gpu-ceilings: measures the ceilings of one GPU and writes them to standard output, as a
// serialized assay.v1.Calibration. A program of its own, since the worker's daemon makes no context
// on a device.
//
//   assay-gpu-ceilings [DRIVER [ORDINAL]]     by default libcuda.so.1 and 0
//
// Exit codes: 0; 2 with one line on standard error.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "worker/backend/cuda/nvml.h"
#include "worker/ceiling/cuda/calibrate_gpu.h"

namespace assay {
namespace {

absl::Status Measure(const std::string& path, int ordinal) {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDriver> driver, CudaDriver::Load(path));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<BenchDevice> device,
                         BenchDevice::Open(driver.get(), ordinal));
  GpuCalibrateOptions options;
  options.facts = device->facts();
  options.timer = device.get();
  Nvml::Options nvml_options;
  nvml_options.uuid = device->facts().uuid;
  nvml_options.pci_bus_id = device->facts().pci_bus_id;
  const absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Open(nvml_options);
  if (nvml.ok()) options.health = [&nvml] { return (*nvml)->Sample(); };
  v1::Calibration calibration;
  ASSAY_RETURN_IF_ERROR(CalibrateGpu(options, &calibration));
  return WriteAll(STDOUT_FILENO, calibration.SerializeAsString());
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  int ordinal = 0;
  absl::Status status;
  if (argc > 3 || (argc == 3 && !absl::SimpleAtoi(argv[2], &ordinal))) {
    status = absl::InvalidArgumentError("usage: assay-gpu-ceilings [DRIVER [ORDINAL]]");
  } else {
    status = assay::Measure(argc > 1 ? argv[1] : "libcuda.so.1", ordinal);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "assay-gpu-ceilings: %s\n", std::string(status.message()).c_str());
  return 2;
}
