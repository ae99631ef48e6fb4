#include "worker/backend/cuda/device_query.h"

#include <array>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/status.h"
#include "worker/backend/cuda/driver.h"
#include "worker/backend/cuda/helper_kernels.h"

namespace assay {
namespace {

absl::Status FillFacts(const CudaDriver& driver, cuda::CUdevice device,
                       internal::v1::DeviceFacts* facts) {
  const cuda::DriverFunctions& cu = driver.functions();
  std::array<char, 256> name = {};
  ASSAY_RETURN_IF_ERROR(
      driver.Check(cu.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
                   "cuDeviceGetName"));
  facts->set_name(name.data());
  size_t bytes = 0;
  ASSAY_RETURN_IF_ERROR(driver.Check(cu.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
  facts->set_memory_bytes(static_cast<int64_t>(bytes));
  cuda::CUuuid uuid = {};
  ASSAY_RETURN_IF_ERROR(driver.Check(cu.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
  facts->set_uuid(absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof uuid.bytes)));
  int version = 0;
  ASSAY_RETURN_IF_ERROR(driver.Check(cu.cuDriverGetVersion(&version), "cuDriverGetVersion"));
  facts->set_driver_version(version);
  absl::Status status;
  const auto attribute = [&](cuda::CUdevice_attribute which) {
    int value = 0;
    status.Update(
        driver.Check(cu.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute"));
    return value;
  };
  const int major = attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts->set_compute_capability(10 * major + minor);
  facts->set_l2_bytes(attribute(cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  facts->set_multiprocessor_count(attribute(cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  facts->set_sm_clock_mhz(attribute(cuda::CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000);
  facts->set_memory_clock_mhz(attribute(cuda::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000);
  facts->set_ecc(attribute(cuda::CU_DEVICE_ATTRIBUTE_ECC_ENABLED) != 0);
  facts->set_has_watchdog(attribute(cuda::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT) != 0);
  return status;
}

}  // namespace

absl::Status QueryDevice(const std::string& library, int ordinal,
                         internal::v1::DeviceFacts* facts) {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDriver> driver, CudaDriver::Load(library));
  if (driver->is_emulated()) {
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, "DRIVER_EMULATED",
        absl::StrCat(library,
                     " is the emulated CUDA driver, which is no CUDA device; start this "
                     "worker with --device emulated:sm_80"));
  }
  ASSAY_ASSIGN_OR_RETURN(const cuda::CUdevice device, driver->FindDevice(ordinal));
  ASSAY_RETURN_IF_ERROR(FillFacts(*driver, device, facts));
  if (facts->compute_capability() >= kHelperComputeCapability) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, "DEVICE_TOO_OLD",
      absl::StrCat(facts->name(), " has compute capability ", facts->compute_capability() / 10, ".",
                   facts->compute_capability() % 10,
                   "; one of 7.5 or later is needed, or the emulated device"));
}

}  // namespace assay
