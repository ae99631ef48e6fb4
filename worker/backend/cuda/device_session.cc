#include "worker/backend/cuda/device_session.h"

#include <utility>

#include "base/status.h"
#include "worker/backend/cuda/device_context.h"
#include "worker/backend/cuda/driver.h"
#include "worker/backend/cuda/emulated_session.h"
#include "worker/backend/cuda/nvml.h"
#include "worker/backend/cuda/real_session.h"

namespace assay {
namespace {

class EmulatedSessions : public DeviceSessions {
 public:
  EmulatedSessions(std::unique_ptr<CudaDriver> driver, const DeviceOptions& options)
      : driver_(std::move(driver)),
        device_{.arch = options.arch, .host_threads = options.host_threads} {}
  bool is_emulated() const override { return true; }
  absl::StatusOr<std::unique_ptr<GuestSession>> Make(DeviceSessionOptions options) override {
    return MakeEmulatedSession(driver_.get(), device_, std::move(options));
  }

 private:
  const std::unique_ptr<CudaDriver> driver_;
  const EmulatedDeviceOptions device_;
};

// nullptr where nobody tells.
std::unique_ptr<Nvml> OpenNvml(const CudaDriver& driver, cuda::CUdevice device) {
  Nvml::Options options;
  cuda::CUuuid uuid = {};
  if (driver.functions().cuDeviceGetUuid(&uuid, device) != cuda::CUDA_SUCCESS) return nullptr;
  options.uuid = uuid;
  absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Open(options);
  return nvml.ok() ? *std::move(nvml) : nullptr;
}

class RealSessions : public DeviceSessions {
 public:
  RealSessions(std::unique_ptr<CudaDriver> driver, std::unique_ptr<DeviceContext> context,
               DeviceHealthSource* health)
      : driver_(std::move(driver)), context_(std::move(context)), health_(health) {
    if (health_ != nullptr) return;
    nvml_ = OpenNvml(*driver_, context_->device());
    health_ = nvml_.get();
  }
  bool is_emulated() const override { return false; }
  absl::StatusOr<std::unique_ptr<GuestSession>> Make(DeviceSessionOptions options) override {
    if (context_->is_lost()) {
      return absl::FailedPreconditionError("the device was left unclean; start a fresh runner");
    }
    return MakeRealSession(context_.get(), health_, std::move(options));
  }

 private:
  const std::unique_ptr<CudaDriver> driver_;
  const std::unique_ptr<DeviceContext> context_;
  std::unique_ptr<Nvml> nvml_;
  DeviceHealthSource* health_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceSessions>> DeviceSessions::Open(const DeviceOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<CudaDriver> driver, CudaDriver::Load(options.driver));
  if (driver->is_emulated()) return std::make_unique<EmulatedSessions>(std::move(driver), options);
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<DeviceContext> context,
                         DeviceContext::Make(driver.get(), options.ordinal));
  return std::make_unique<RealSessions>(std::move(driver), std::move(context), options.health);
}

}  // namespace assay
