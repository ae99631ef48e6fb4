#include "worker/backend/cuda/real_session.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "worker/backend/cuda/device_arena.h"
#include "worker/backend/cuda/device_program.h"
#include "worker/backend/cuda/module_variables.h"

namespace assay {
namespace {

using cuda::CUdeviceptr;
using cuda::CUresult;
using internal::v1::GuestFault;

constexpr unsigned char kPoison = 0xff;  // NaN in every floating-point type

class RealSession : public GuestSession {
 public:
  RealSession(DeviceContext* context, DeviceHealthSource* health, DeviceSessionOptions options)
      : context_(*context),
        health_(health),
        options_(std::move(options)),
        random_(options_.seed),
        arena_(context, random_()),
        program_(&context->driver(), nullptr),
        variables_(context) {}
  ~RealSession() override {
    if (context_.is_lost()) program_.Abandon();
  }

  absl::Status Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                    const std::vector<int64_t>& axes) override;
  std::span<std::byte> Buffer(size_t index) override { return tensors_[index].host; }
  using GuestSession::Call;
  std::optional<CallTiming> Call(GuestCache cache, absl::Duration timeout,
                                 const std::function<void()>& once_armed) override;
  std::optional<CallTiming> CallEmpty(GuestCache cache) override;
  const std::optional<GuestEnd>& ended() const override { return end_; }
  // What a kernel prints goes nowhere.
  std::string output() override { return ""; }
  const std::vector<std::string>& walls() const override { return walls_; }
  const std::vector<std::string>& missing_walls() const override { return missing_walls_; }

 private:
  struct Tensor {
    std::string name;
    bool writable = false;
    std::vector<std::byte> host;
    uint64_t checksum = 0;  // of an input, before the call
  };

  absl::Status Allocate();
  absl::Status Prepare(GuestCache cache);
  absl::Status PrepareCache(GuestCache cache);
  // After a run. Sets end_ when the candidate is at fault.
  absl::Status Inspect(const DeviceRun& run);
  absl::Status CheckMemory();
  absl::Status FindWrittenByte(size_t tensor);
  absl::StatusOr<DeviceRun> RunOnce(GuestCache cache, absl::Duration timeout);
  CallTiming TimingOf(const DeviceRun& run);
  void Lose(const absl::Status& status);
  const std::string& BufferName(size_t buffer) const {
    return buffer < tensors_.size() ? tensors_[buffer].name
                                    : program_.plan().workspaces[buffer - tensors_.size()].name;
  }

  DeviceContext& context_;
  DeviceHealthSource* const health_;
  const DeviceSessionOptions options_;
  Random random_;
  DeviceArena arena_;  // the tensors, then the workspaces
  DeviceProgram program_;
  ModuleVariables variables_;
  std::vector<Tensor> tensors_;
  std::optional<GuestEnd> end_;
  const std::vector<std::string> walls_ = {"device-tier"};
  const std::vector<std::string> missing_walls_;
};

absl::Status RealSession::Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                               const std::vector<int64_t>& axes) {
  for (const GuestBuffer& buffer : buffers) {
    tensors_.push_back({buffer.name, buffer.writable, std::vector<std::byte>(buffer.bytes), 0});
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string ptx, ReadArtifact(artifact_fd));
  ASSAY_ASSIGN_OR_RETURN(end_, variables_.Load(ptx, &program_));
  if (end_.has_value()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(end_, program_.ResolvePlanOn(context_.device(), ptx, *options_.candidate,
                                                      options_.workload, options_.configuration));
  return end_.has_value() ? absl::OkStatus() : Allocate();
}

absl::Status RealSession::Allocate() {
  std::vector<size_t> sizes;
  size_t tensor_bytes = 0;
  for (const Tensor& tensor : tensors_) {
    sizes.push_back(tensor.host.size());
    tensor_bytes += tensor.host.size();
  }
  size_t workspace_bytes = 0;
  for (const ResolvedWorkspace& workspace : program_.plan().workspaces) {
    sizes.push_back(static_cast<size_t>(workspace.bytes));
    workspace_bytes += sizes.back();
  }
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  const CudaDriver& driver = context_.driver();
  ASSAY_RETURN_IF_ERROR(
      driver.Check(driver.functions().cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo"));
  const CUresult got = arena_.Allocate(sizes);
  if (got != cuda::CUDA_ERROR_OUT_OF_MEMORY) return driver.Check(got, "cuMemAlloc");
  const std::string what =
      absl::StrCat("tensors (", tensor_bytes >> 20, " MiB) and workspaces (", workspace_bytes >> 20,
                   " MiB) do not fit into the ", free_bytes >> 20, " of ", total_bytes >> 20,
                   " MiB that the device has free");
  if (tensor_bytes >= free_bytes || workspace_bytes == 0) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "DEVICE_MEMORY_TOO_SMALL",
                           absl::StrCat(what, "; name a smaller workload or another device"));
  }
  end_ = MakeEnd(GuestFault::MEMORY_LIMIT, what);
  return absl::OkStatus();
}

absl::Status RealSession::PrepareCache(GuestCache cache) {
  ASSAY_RETURN_IF_ERROR(context_.ResetPersistingCache());
  if (cache == GuestCache::kCold) return context_.FlushCache();
  if (cache == GuestCache::kLeave) return absl::OkStatus();
  // Reads bring them in as far as they fit; the inputs were read before for their checksums.
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ASSAY_RETURN_IF_ERROR(context_.Checksum(arena_.address(i), tensors_[i].host.size()).status());
  }
  return absl::OkStatus();
}

absl::Status RealSession::Prepare(GuestCache cache) {
  // Of a cold call at the end, when nothing follows that would be in the caches.
  if (cache != GuestCache::kCold) ASSAY_RETURN_IF_ERROR(context_.FlushCache());
  ASSAY_RETURN_IF_ERROR(arena_.Rearrange());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ASSAY_RETURN_IF_ERROR(context_.Upload(arena_.address(i), tensors_[i].host));
  }
  const std::vector<ResolvedWorkspace>& workspaces = program_.plan().workspaces;
  for (size_t i = 0; i < workspaces.size(); ++i) {
    ASSAY_RETURN_IF_ERROR(context_.Fill(arena_.address(tensors_.size() + i), kPoison,
                                        static_cast<size_t>(workspaces[i].bytes)));
  }
  ASSAY_RETURN_IF_ERROR(variables_.PutBack());
  ASSAY_RETURN_IF_ERROR(context_.FillShared(static_cast<uint32_t>(random_()) | 0x7fc00000u));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].writable) continue;
    ASSAY_ASSIGN_OR_RETURN(tensors_[i].checksum,
                           context_.Checksum(arena_.address(i), tensors_[i].host.size()));
  }
  return PrepareCache(cache);
}

absl::StatusOr<DeviceRun> RealSession::RunOnce(GuestCache cache, absl::Duration timeout) {
  ASSAY_RETURN_IF_ERROR(Prepare(cache));
  std::vector<CUdeviceptr> tensors;
  std::vector<CUdeviceptr> workspaces;
  for (size_t i = 0; i < tensors_.size(); ++i) tensors.push_back(arena_.address(i));
  for (size_t i = 0; i < program_.plan().workspaces.size(); ++i) {
    workspaces.push_back(arena_.address(tensors_.size() + i));
  }
  const auto launch = [&](cuda::CUstream stream) {
    return program_.Launch(stream, tensors, workspaces);
  };
  // The calls of the verification come first, and only later ones are timed.
  return context_.Run(launch, cache != GuestCache::kLeave, timeout);
}

absl::Status RealSession::FindWrittenByte(size_t index) {
  const Tensor& tensor = tensors_[index];
  std::vector<std::byte> now(tensor.host.size());
  ASSAY_RETURN_IF_ERROR(context_.Download(now, arena_.address(index)));
  const auto changed = std::mismatch(now.begin(), now.end(), tensor.host.begin()).first;
  end_ = MakeEnd(GuestFault::INPUT_WRITTEN, "");
  end_->tensor = tensor.name;
  end_->byte_offset = changed == now.end() ? 0 : changed - now.begin();
  return absl::OkStatus();
}

absl::Status RealSession::CheckMemory() {
  ASSAY_ASSIGN_OR_RETURN(const std::optional<BrokenGuard> broken, arena_.CheckGuards());
  if (broken.has_value()) {
    end_ = MakeEnd(GuestFault::OUT_OF_BOUNDS, "a guard zone beside it was written");
    end_->tensor = BufferName(broken->buffer);
    end_->byte_offset = broken->offset;
    return absl::OkStatus();
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].writable) continue;
    ASSAY_ASSIGN_OR_RETURN(const uint64_t checksum,
                           context_.Checksum(arena_.address(i), tensors_[i].host.size()));
    if (checksum != tensors_[i].checksum) return FindWrittenByte(i);
  }
  return absl::OkStatus();
}

absl::Status RealSession::Inspect(const DeviceRun& run) {
  if (run.timed_out) {
    context_.Lose();
    end_ = MakeEnd(GuestFault::TIMED_OUT, "the kernels still ran at the call's limit");
    end_->device_unclean = true;
    return absl::OkStatus();
  }
  if (run.result != cuda::CUDA_SUCCESS) {
    const std::string name = context_.driver().ErrorName(run.result);
    end_ = EndOfResult(run.result, name);
    if (!end_.has_value()) {
      context_.Lose();
      return absl::UnavailableError(absl::StrCat("the device failed: ", name));
    }
    if (end_->device_unclean) context_.Lose();
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(CheckMemory());
  if (end_.has_value()) return absl::OkStatus();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].writable) continue;
    ASSAY_RETURN_IF_ERROR(context_.Download(tensors_[i].host, arena_.address(i)));
  }
  return absl::OkStatus();
}

CallTiming RealSession::TimingOf(const DeviceRun& run) {
  CallTiming timing;
  timing.duration_ns = run.event_ns;
  timing.device = DeviceTiming{run.gated, run.wall_ns, run.late_ns, std::nullopt};
  if (health_ != nullptr) timing.device->health = health_->Sample();
  return timing;
}

// The infrastructure's failure.
void RealSession::Lose(const absl::Status& status) {
  context_.Lose();
  end_ = MakeEnd(GuestFault::KIND_UNSPECIFIED, std::string(status.message()));
  end_->device_unclean = true;
}

std::optional<CallTiming> RealSession::Call(GuestCache cache, absl::Duration timeout,
                                            const std::function<void()>& once_armed) {
  if (end_.has_value()) return std::nullopt;
  if (once_armed) once_armed();
  const absl::StatusOr<DeviceRun> run = RunOnce(cache, timeout);
  if (!run.ok()) {
    Lose(run.status());
    return std::nullopt;
  }
  CallTiming timing = TimingOf(*run);
  const absl::Status inspected = Inspect(*run);
  if (!inspected.ok()) Lose(inspected);
  if (end_.has_value()) return std::nullopt;
  return timing;
}

std::optional<CallTiming> RealSession::CallEmpty(GuestCache cache) {
  if (end_.has_value()) return std::nullopt;
  absl::Status ready = Prepare(cache);
  if (ready.ok()) {
    const absl::StatusOr<DeviceRun> run = context_.RunEmpty(absl::Seconds(limits::kCallSeconds));
    if (run.ok()) return TimingOf(*run);
    ready = run.status();
  }
  Lose(ready);
  return std::nullopt;
}

}  // namespace

std::optional<GuestEnd> EndOfResult(CUresult result, const std::string& name) {
  GuestEnd end = MakeEnd(GuestFault::DEVICE_TRAP, absl::StrCat("the device reports ", name));
  end.device_unclean = true;
  switch (result) {
    case cuda::CUDA_ERROR_ILLEGAL_ADDRESS:
    case cuda::CUDA_ERROR_INVALID_ADDRESS_SPACE:
      end.kind = GuestFault::DEVICE_FAULT;
      end.check = "OUT_OF_BOUNDS";
      return end;
    case cuda::CUDA_ERROR_MISALIGNED_ADDRESS:
      end.kind = GuestFault::DEVICE_FAULT;
      end.check = "MISALIGNED";
      return end;
    case cuda::CUDA_ERROR_LAUNCH_TIMEOUT:
      end.kind = GuestFault::TIMED_OUT;
      return end;
    case cuda::CUDA_ERROR_ASSERT:
    case cuda::CUDA_ERROR_HARDWARE_STACK_ERROR:
    case cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case cuda::CUDA_ERROR_INVALID_PC:
    case cuda::CUDA_ERROR_LAUNCH_FAILED:
      return end;
    case cuda::CUDA_ERROR_OUT_OF_MEMORY:
      // Of a launch: tensors and workspaces have their memory already.
      end.kind = GuestFault::MEMORY_LIMIT;
      end.message = "the device has not the local memory that a launch needs";
      end.device_unclean = false;
      return end;
    case cuda::CUDA_ERROR_INVALID_VALUE:
    case cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case cuda::CUDA_ERROR_INVALID_CLUSTER_SIZE:
      // Refused before anything ran.
      end.kind = GuestFault::PLAN_INVALID;
      end.check = "PLAN_OVER_LIMIT";
      end.message = absl::StrCat("the device refuses a launch: ", name,
                                 "; the kernel needs more registers or shared memory for such a "
                                 "block than there are");
      end.device_unclean = false;
      return end;
    default:
      return std::nullopt;
  }
}

std::unique_ptr<GuestSession> MakeRealSession(DeviceContext* context, DeviceHealthSource* health,
                                              DeviceSessionOptions options) {
  return std::make_unique<RealSession>(context, health, std::move(options));
}

}  // namespace assay
