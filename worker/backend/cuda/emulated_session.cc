#include "worker/backend/cuda/emulated_session.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/backend/cuda/device_program.h"
#include "worker/backend/cuda/ptx_variables.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

using cuda::AssayEmulatorFault;
using cuda::AssayEmulatorReport;
using cuda::CUdeviceptr;
using cuda::CUresult;
using internal::v1::GuestFault;

// About what an emulator executes in the time that one call may take.
constexpr uint64_t kInstructionsMax = 300'000'000;
constexpr uint64_t kDeviceBytes = uint64_t{6} << 30;
constexpr unsigned char kPoison = 0xff;  // NaN in every floating-point type

GuestFault::Kind KindOf(cuda::AssayEmulatorFaultKind kind) {
  switch (kind) {
    case cuda::kAssayEmulatorFaultInstructionBudget:
    case cuda::kAssayEmulatorFaultTimeBudget:
      return GuestFault::TIMED_OUT;
    case cuda::kAssayEmulatorFaultTrap:
    case cuda::kAssayEmulatorFaultAssert:
      return GuestFault::DEVICE_TRAP;
    case cuda::kAssayEmulatorFaultPrintfFlood:
      return GuestFault::OUTPUT_FLOOD;
    case cuda::kAssayEmulatorFaultUnsupported:
      return GuestFault::NOT_EMULATED;
    default:
      return GuestFault::DEVICE_FAULT;
  }
}

// A name of a file inside the build sandbox, as the candidate knows it.
std::string SourceName(std::string_view file) {
  constexpr std::string_view kFolder = "/src/";
  return std::string(file.substr(0, kFolder.size()) == kFolder ? file.substr(kFolder.size())
                                                               : file);
}

GuestEnd EndOf(const AssayEmulatorFault& fault) {
  GuestEnd end;
  end.kind = KindOf(fault.kind);
  end.check = fault.kind_name;
  end.file = SourceName(fault.file);
  end.line = fault.line;
  const std::string place = end.file.empty() || fault.line == 0
                                ? absl::StrCat("PTX line ", fault.ptx_line)
                                : absl::StrCat(end.file, ":", fault.line);
  end.message = absl::StrCat(fault.kind_name, " at ", place, ", ", fault.opcode, " of kernel ",
                             fault.kernel, ", block (", fault.block[0], ", ", fault.block[1], ", ",
                             fault.block[2], "), thread (", fault.thread[0], ", ", fault.thread[1],
                             ", ", fault.thread[2], "): ", fault.message);
  return end;
}

void FillObserved(const AssayEmulatorReport& report, v1::ObservedWork* observed) {
  const cuda::AssayEmulatorCounters& counters = report.counters;
  observed->set_launches(static_cast<int64_t>(report.launches));
#define ASSAY_COPY_COUNTER(name) observed->set_##name(static_cast<int64_t>(counters.name))
  ASSAY_COPY_COUNTER(warp_instructions);
  ASSAY_COPY_COUNTER(thread_instructions);
  ASSAY_COPY_COUNTER(f16_flops);
  ASSAY_COPY_COUNTER(f32_flops);
  ASSAY_COPY_COUNTER(f64_flops);
  ASSAY_COPY_COUNTER(tensor_flops);
  ASSAY_COPY_COUNTER(special_operations);
  ASSAY_COPY_COUNTER(integer_operations);
  ASSAY_COPY_COUNTER(global_load_bytes);
  ASSAY_COPY_COUNTER(global_store_bytes);
  ASSAY_COPY_COUNTER(shared_load_bytes);
  ASSAY_COPY_COUNTER(shared_store_bytes);
  ASSAY_COPY_COUNTER(local_bytes);
  ASSAY_COPY_COUNTER(atomic_operations);
  ASSAY_COPY_COUNTER(global_sectors);
  ASSAY_COPY_COUNTER(global_sectors_least);
  ASSAY_COPY_COUNTER(shared_accesses);
  ASSAY_COPY_COUNTER(shared_bank_conflicts);
  ASSAY_COPY_COUNTER(branches);
  ASSAY_COPY_COUNTER(divergent_branches);
  ASSAY_COPY_COUNTER(barriers);
#undef ASSAY_COPY_COUNTER
}

// What has to be set to see a fault again; empty for the natural order.
std::string Describe(const CallConditions& conditions) {
  std::string text;
  if (conditions.order != 0) absl::StrAppend(&text, "; in order ", conditions.order);
  if (conditions.perturb_approximations) {
    absl::StrAppend(&text, "; with approximate functions that err within their documented bounds");
  }
  if (conditions.clock_rate != 1 || conditions.clock_offset != 0) {
    absl::StrAppend(&text, "; with clocks of ", conditions.clock_rate, " ticks an operation from ",
                    conditions.clock_offset);
  }
  return text;
}

class EmulatedSession : public GuestSession {
 public:
  EmulatedSession(const CudaDriver* driver, const EmulatedDeviceOptions& device,
                  DeviceSessionOptions options)
      : device_(device), options_(std::move(options)), driver_(*driver), cu_(driver->functions()) {}
  ~EmulatedSession() override { CloseContext(); }

  absl::Status Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                    const std::vector<int64_t>& axes) override;
  std::span<std::byte> Buffer(size_t index) override { return tensors_[index].host; }
  using GuestSession::Call;
  std::optional<CallTiming> Call(GuestCache cache, absl::Duration timeout,
                                 const std::function<void()>& once_armed) override;
  // Emulated calls carry no time.
  std::optional<CallTiming> CallEmpty(GuestCache cache) override { return CallTiming(); }
  bool has_conditions() const override { return true; }
  void SetConditions(const CallConditions& conditions) override { conditions_ = conditions; }
  const CandidateTraits* traits() const override { return &traits_; }
  absl::Status Revive() override;
  const v1::ObservedWork* observed() const override { return &observed_; }
  const std::optional<GuestEnd>& ended() const override { return end_; }
  std::string output() override { return CleanText(output_); }
  const std::vector<std::string>& walls() const override { return walls_; }
  const std::vector<std::string>& missing_walls() const override { return missing_walls_; }

 private:
  struct DeviceBuffer {
    std::string name;
    size_t bytes = 0;
    bool writable = false;
    std::vector<std::byte> host;  // of a tensor
    CUdeviceptr address = 0;      // 0: no bytes
  };

  absl::Status Configure(const CallConditions& conditions);
  absl::Status OpenContext();
  void CloseContext();
  // Loads the candidate into a fresh context, and allocates.
  absl::Status LoadCandidate();
  absl::Status AllocateAll();
  // All buffers to new addresses.
  absl::Status MoveAll();
  absl::Status Allocate(DeviceBuffer* buffer);
  absl::Status Refill(DeviceBuffer* buffer);
  absl::Status RefillAll();
  CUresult LaunchAll();
  // The session is lost, by no fault of the candidate.
  void Lose(const absl::Status& status);
  // Takes printf output and the first fault, which ends the session.
  void TakeReport();
  std::string LastError();

  const EmulatedDeviceOptions device_;
  const DeviceSessionOptions options_;
  const CudaDriver& driver_;
  const cuda::DriverFunctions& cu_;
  cuda::CUcontext context_ = nullptr;
  std::unique_ptr<DeviceProgram> program_;
  std::vector<DeviceBuffer> tensors_;
  std::vector<DeviceBuffer> workspaces_;
  std::string ptx_;
  CandidateTraits traits_;
  CallConditions conditions_;
  uint64_t placement_ = 0;
  v1::ObservedWork observed_;
  std::optional<GuestEnd> end_;
  std::string output_;
  std::vector<std::string> walls_ = {"device-tier"};
  std::vector<std::string> missing_walls_;
};

absl::Status EmulatedSession::Configure(const CallConditions& conditions) {
  cuda::AssayEmulatorOptions options = {};
  options.struct_bytes = sizeof(options);
  options.arch = static_cast<uint32_t>(device_.arch);
  options.seed = conditions.order;
  options.host_threads = conditions.serial ? 1 : static_cast<uint32_t>(device_.host_threads);
  options.perturb_approximations = conditions.perturb_approximations ? 1 : 0;
  options.check_races = 1;
  options.instructions_max = kInstructionsMax;
  options.device_bytes = kDeviceBytes;
  options.clock_rate = conditions.clock_rate;
  options.clock_offset = conditions.clock_offset;
  // From here on: a call configures first.
  options.cpu_ns_max = static_cast<uint64_t>(absl::ToInt64Nanoseconds(device_.call_cpu_max));
  return driver_.Check(driver_.emulator().assayEmulatorConfigure(&options),
                       "configuring the emulated device");
}

std::string EmulatedSession::LastError() {
  std::string text;
  (void)driver_.emulator().assayEmulatorTakeReport(
      [](void* user, const AssayEmulatorReport* report) {
        *static_cast<std::string*>(user) = report->last_error;
      },
      &text);
  return text;
}

void EmulatedSession::Lose(const absl::Status& status) {
  end_ = MakeEnd(GuestFault::KIND_UNSPECIFIED, std::string(status.message()));
}

void EmulatedSession::CloseContext() {
  program_.reset();
  if (context_ != nullptr) (void)cu_.cuCtxDestroy(context_);
  context_ = nullptr;
}

absl::Status EmulatedSession::OpenContext() {
  cuda::CUdevice device = 0;
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuInit(0), "cuInit"));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuDeviceGet(&device, 0), "cuDeviceGet"));
  return driver_.Check(cu_.cuCtxCreate(&context_, 0, device), "cuCtxCreate");
}

absl::Status EmulatedSession::Allocate(DeviceBuffer* buffer) {
  if (buffer->bytes == 0) return absl::OkStatus();
  const CUresult got = cu_.cuMemAlloc(&buffer->address, buffer->bytes);
  if (got == cuda::CUDA_ERROR_OUT_OF_MEMORY) {
    end_ = MakeEnd(GuestFault::MEMORY_LIMIT,
                   absl::StrCat("tensors and workspaces do not fit into the ", kDeviceBytes >> 20,
                                " MiB of the emulated device"));
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(driver_.Check(got, "cuMemAlloc"));
  return driver_.Check(
      driver_.emulator().assayEmulatorSetBuffer(
          buffer->address, buffer->writable ? cuda::kAssayEmulatorPlain : cuda::kAssayEmulatorInput,
          buffer->name.c_str()),
      "naming a buffer");
}

absl::Status EmulatedSession::AllocateAll() {
  for (std::vector<DeviceBuffer>* buffers : {&tensors_, &workspaces_}) {
    for (DeviceBuffer& buffer : *buffers) {
      ASSAY_RETURN_IF_ERROR(Allocate(&buffer));
      if (end_.has_value()) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status EmulatedSession::Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                                   const std::vector<int64_t>& axes) {
  for (const GuestBuffer& buffer : buffers) {
    tensors_.push_back(
        {buffer.name, buffer.bytes, buffer.writable, std::vector<std::byte>(buffer.bytes), 0});
  }
  ASSAY_ASSIGN_OR_RETURN(ptx_, ReadArtifact(artifact_fd));
  traits_.has_variables = !ScanPtxVariables(ptx_).empty();
  traits_.reads_clock =
      absl::StrContains(ptx_, "%clock") || absl::StrContains(ptx_, "%globaltimer");
  ASSAY_RETURN_IF_ERROR(LoadCandidate());
  if (end_.has_value()) return absl::OkStatus();
  for (const ResolvedLaunch& launch : program_->plan().launches) {
    traits_.kernels.push_back(launch.kernel);
  }
  return absl::OkStatus();
}

absl::Status EmulatedSession::LoadCandidate() {
  CallConditions gaps;
  gaps.order = options_.seed;
  ASSAY_RETURN_IF_ERROR(Configure(gaps));
  ASSAY_RETURN_IF_ERROR(OpenContext());
  program_ = std::make_unique<DeviceProgram>(&driver_, [this] { return LastError(); });
  ASSAY_ASSIGN_OR_RETURN(end_, program_->LoadModule(ptx_));
  if (end_.has_value()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(end_, program_->ResolvePlanOn(0, ptx_, *options_.candidate,
                                                       options_.workload, options_.configuration));
  if (end_.has_value()) return absl::OkStatus();
  workspaces_.clear();
  for (const ResolvedWorkspace& workspace : program_->plan().workspaces) {
    workspaces_.push_back({workspace.name, static_cast<size_t>(workspace.bytes), true, {}, 0});
  }
  return AllocateAll();
}

absl::Status EmulatedSession::Revive() {
  (void)LastError();  // Takes what is left of the report.
  CloseContext();
  end_.reset();
  for (DeviceBuffer& tensor : tensors_) tensor.address = 0;
  ASSAY_RETURN_IF_ERROR(LoadCandidate());
  if (!end_.has_value()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("a candidate that was loaded cannot be loaded again: ", end_->message));
}

absl::Status EmulatedSession::MoveAll() {
  for (std::vector<DeviceBuffer>* buffers : {&tensors_, &workspaces_}) {
    for (DeviceBuffer& buffer : *buffers) {
      if (buffer.address == 0) continue;
      ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuMemFree(buffer.address), "cuMemFree"));
      buffer.address = 0;
    }
  }
  // They are given addresses in rising order, and old ones again only when those are used up.
  return AllocateAll();
}

// What a call finds: inputs as the runner wrote them, and nothing in outputs and workspaces.
absl::Status EmulatedSession::Refill(DeviceBuffer* buffer) {
  if (buffer->address == 0) return absl::OkStatus();
  if (buffer->host.empty()) {
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuMemsetD8(buffer->address, kPoison, buffer->bytes), "cuMemsetD8"));
  } else {
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu_.cuMemcpyHtoD(buffer->address, buffer->host.data(), buffer->bytes), "cuMemcpyHtoD"));
  }
  if (!buffer->writable) return absl::OkStatus();
  return driver_.Check(driver_.emulator().assayEmulatorPoison(buffer->address, buffer->bytes),
                       "poisoning a buffer");
}

absl::Status EmulatedSession::RefillAll() {
  if (!conditions_.keep_variables) {
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        driver_.emulator().assayEmulatorResetVariables(program_->module()), "resetting variables"));
  }
  if (conditions_.placement != placement_) {
    placement_ = conditions_.placement;
    ASSAY_RETURN_IF_ERROR(MoveAll());
  }
  for (std::vector<DeviceBuffer>* buffers : {&tensors_, &workspaces_}) {
    for (DeviceBuffer& buffer : *buffers) ASSAY_RETURN_IF_ERROR(Refill(&buffer));
  }
  return absl::OkStatus();
}

CUresult EmulatedSession::LaunchAll() {
  std::vector<CUdeviceptr> tensors;
  std::vector<CUdeviceptr> workspaces;
  for (const DeviceBuffer& buffer : tensors_) tensors.push_back(buffer.address);
  for (const DeviceBuffer& buffer : workspaces_) workspaces.push_back(buffer.address);
  const CUresult launched =
      program_->Launch(nullptr, tensors, workspaces, conditions_.left_out_launch);
  return launched == cuda::CUDA_SUCCESS ? cu_.cuCtxSynchronize() : launched;
}

void EmulatedSession::TakeReport() {
  (void)driver_.emulator().assayEmulatorTakeReport(
      [](void* user, const AssayEmulatorReport* report) {
        auto* const self = static_cast<EmulatedSession*>(user);
        const size_t room = limits::kGuestOutputBytesMax -
                            std::min(limits::kGuestOutputBytesMax, self->output_.size());
        self->output_.append(report->output, std::min<size_t>(room, report->output_bytes));
        self->observed_.Clear();
        FillObserved(*report, &self->observed_);
        if (report->fault_count == 0) return;
        self->end_ = EndOf(report->faults[0]);
        self->end_->message += Describe(self->conditions_);
      },
      this);
}

std::optional<CallTiming> EmulatedSession::Call(GuestCache cache, absl::Duration timeout,
                                                const std::function<void()>& once_armed) {
  if (end_.has_value()) return std::nullopt;
  if (once_armed) once_armed();
  absl::Status ready = Configure(conditions_);
  if (ready.ok()) ready = RefillAll();
  if (!ready.ok()) {
    Lose(ready);
    return std::nullopt;
  }
  const CUresult ran = LaunchAll();
  TakeReport();
  if (!end_.has_value() && ran != cuda::CUDA_SUCCESS) {
    end_ = program_->Refused(
        ran == cuda::CUDA_ERROR_NOT_SUPPORTED ? GuestFault::NOT_EMULATED : GuestFault::DEVICE_TRAP,
        ran, "a launch");
  }
  if (end_.has_value()) return std::nullopt;
  for (DeviceBuffer& tensor : tensors_) {
    if (!tensor.writable || tensor.address == 0) continue;
    const absl::Status copied = driver_.Check(
        cu_.cuMemcpyDtoH(tensor.host.data(), tensor.address, tensor.bytes), "cuMemcpyDtoH");
    if (copied.ok()) continue;
    Lose(copied);
    return std::nullopt;
  }
  return CallTiming();
}

}  // namespace

std::unique_ptr<GuestSession> MakeEmulatedSession(const CudaDriver* driver,
                                                  const EmulatedDeviceOptions& device,
                                                  DeviceSessionOptions options) {
  return std::make_unique<EmulatedSession>(driver, device, std::move(options));
}

}  // namespace assay
