// A candidate's PTX and launch plan on one device: loaded, checked against each other, and ready to
// be launched. The same for a real device and for the emulated one.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_PROGRAM_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_PROGRAM_H_

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/plan/plan.h"
#include "worker/backend/cuda/driver.h"
#include "worker/guest/guest_session.h"

namespace assay {

namespace v1 {
class CandidateSpec;
}

// The whole of an artifact. UNAVAILABLE when it cannot be read.
absl::StatusOr<std::string> ReadArtifact(int fd);

// Kinds as in assay.internal.v1.GuestFault.
GuestEnd MakeEnd(int kind, std::string message);

// Not thread-safe; used in the context in which it was loaded. What a method returns as GuestEnd is
// the candidate's fault; a bad status is the infrastructure's.
class DeviceProgram {
 public:
  // The driver's own words on what it refused last; empty when it has none.
  using Explain = std::function<std::string()>;

  // `driver` outlives the program.
  DeviceProgram(const CudaDriver* driver, Explain explain)
      : driver_(*driver), explain_(std::move(explain)) {}
  DeviceProgram(const DeviceProgram&) = delete;
  ~DeviceProgram();

  // Compiles and loads `ptx` into the current context, in place of what was loaded before.
  // UNAVAILABLE with reason DRIVER_FAILED or DEVICE_MEMORY_TOO_SMALL when the text is not to blame.
  absl::StatusOr<std::optional<GuestEnd>> LoadModule(const std::string& ptx);

  // Resolves the plan for the module that was loaded from `ptx`.
  absl::StatusOr<std::optional<GuestEnd>> ResolvePlanOn(cuda::CUdevice device,
                                                        const std::string& ptx,
                                                        const v1::CandidateSpec& candidate,
                                                        const ResolvedWorkload& workload,
                                                        const ValueMap& configuration);

  cuda::CUmodule module() const { return module_; }
  const ResolvedPlan& plan() const { return plan_; }

  // Puts every launch of the plan into `stream`, in order, until one is refused. `tensors` and
  // `workspaces` are the addresses by number. The launch numbered `left_out` is not put.
  cuda::CUresult Launch(cuda::CUstream stream, std::span<const cuda::CUdeviceptr> tensors,
                        std::span<const cuda::CUdeviceptr> workspaces, int left_out = -1) const;

  // The candidate's end for what the driver refused.
  GuestEnd Refused(int kind, cuda::CUresult result, std::string_view what) const;

  // Gives up without a word to the driver: for a context that is lost.
  void Abandon() { module_ = nullptr; }

 private:
  // Whose fault it is that `what` cannot be loaded. `log`: of the driver's compiler.
  absl::StatusOr<GuestEnd> EndOfLoad(cuda::CUresult result, const std::string& what,
                                     const std::string& log) const;
  absl::StatusOr<GuestEnd> EndOfNoMemory(GuestEnd refused) const;
  absl::StatusOr<std::optional<GuestEnd>> FindKernels(const v1::CandidateSpec& candidate,
                                                      std::vector<KernelSignature>* signatures);

  const CudaDriver& driver_;
  const Explain explain_;
  cuda::CUmodule module_ = nullptr;
  std::map<std::string, cuda::CUfunction> kernels_;
  ResolvedPlan plan_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_PROGRAM_H_
