#include "worker/backend/cuda/device_session.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"
#include "kernels/plan/plan.h"
#include "worker/backend/cuda/driver.h"
#include "worker/backend/cuda/ptx_signature.h"
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
constexpr int kSharedWithoutOptIn = 48 << 10;

absl::StatusOr<std::string> ReadAll(int fd) {
  std::string text;
  char buffer[64 << 10];
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer, sizeof(buffer), at);
    if (got < 0) return absl::UnavailableError("the candidate's artifact cannot be read");
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    at += got;
  }
}

GuestFault::Kind KindOf(cuda::AssayEmulatorFaultKind kind) {
  switch (kind) {
    case cuda::kAssayEmulatorFaultInstructionBudget:
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
  return text;
}

class DeviceSession : public GuestSession {
 public:
  DeviceSession(DeviceSessionOptions options, std::unique_ptr<CudaDriver> driver)
      : options_(std::move(options)), driver_(std::move(driver)), cu_(driver_->functions()) {}
  ~DeviceSession() override {
    if (context_ != nullptr) (void)cu_.cuCtxDestroy(context_);
  }

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
  absl::Status LoadModule(const std::string& ptx);
  absl::Status Plan(const std::string& ptx);
  absl::StatusOr<std::vector<KernelSignature>> Signatures(const std::string& ptx);
  absl::Status AllocateAll();
  absl::Status Allocate(DeviceBuffer* buffer);
  absl::Status Refill(DeviceBuffer* buffer);
  CUresult LaunchAll();
  // The candidate's end for what the driver refused, with the emulator's own words.
  void EndWith(GuestFault::Kind kind, CUresult result, std::string_view what);
  // Takes printf output and the first fault, which ends the session.
  void TakeReport();
  std::string LastError();

  const DeviceSessionOptions options_;
  const std::unique_ptr<CudaDriver> driver_;
  const cuda::DriverFunctions& cu_;
  cuda::CUcontext context_ = nullptr;
  cuda::CUmodule module_ = nullptr;
  std::map<std::string, cuda::CUfunction> kernels_;
  ResolvedPlan plan_;
  std::vector<DeviceBuffer> tensors_;
  std::vector<DeviceBuffer> workspaces_;
  CallConditions conditions_;
  v1::ObservedWork observed_;
  std::optional<GuestEnd> end_;
  std::string output_;
  std::vector<std::string> walls_ = {"device-tier"};
  std::vector<std::string> missing_walls_;
};

absl::Status DeviceSession::Configure(const CallConditions& conditions) {
  cuda::AssayEmulatorOptions options = {};
  options.struct_bytes = sizeof(options);
  options.arch = static_cast<uint32_t>(options_.arch);
  options.seed = conditions.order;
  options.host_threads = conditions.serial ? 1 : static_cast<uint32_t>(options_.host_threads);
  options.perturb_approximations = conditions.perturb_approximations ? 1 : 0;
  options.check_races = 1;
  options.instructions_max = kInstructionsMax;
  options.device_bytes = kDeviceBytes;
  return driver_->Check(driver_->emulator().assayEmulatorConfigure(&options),
                        "configuring the emulated device");
}

std::string DeviceSession::LastError() {
  std::string text;
  (void)driver_->emulator().assayEmulatorTakeReport(
      [](void* user, const AssayEmulatorReport* report) {
        *static_cast<std::string*>(user) = report->last_error;
      },
      &text);
  return text;
}

void DeviceSession::EndWith(GuestFault::Kind kind, CUresult result, std::string_view what) {
  const std::string why = LastError();
  end_ = GuestEnd{};
  end_->kind = kind;
  end_->message =
      absl::StrCat(Av(what), ": ", driver_->ErrorName(result), why.empty() ? "" : ": ", why);
}

absl::Status DeviceSession::LoadModule(const std::string& ptx) {
  cuda::CUdevice device = 0;
  ASSAY_RETURN_IF_ERROR(driver_->Check(cu_.cuInit(0), "cuInit"));
  ASSAY_RETURN_IF_ERROR(driver_->Check(cu_.cuDeviceGet(&device, 0), "cuDeviceGet"));
  ASSAY_RETURN_IF_ERROR(driver_->Check(cu_.cuCtxCreate(&context_, 0, device), "cuCtxCreate"));
  const CUresult loaded = cu_.cuModuleLoadData(&module_, ptx.c_str());
  if (loaded != cuda::CUDA_SUCCESS)
    EndWith(GuestFault::LOAD_FAILED, loaded, "the PTX cannot be loaded");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<KernelSignature>> DeviceSession::Signatures(const std::string& ptx) {
  std::vector<KernelSignature> signatures = ScanPtxKernels(ptx);
  for (const v1::Launch& launch : options_.candidate->plan().launches()) {
    const auto known =
        std::find_if(signatures.begin(), signatures.end(),
                     [&](const KernelSignature& s) { return s.name == launch.kernel(); });
    if (known == signatures.end() || kernels_.count(launch.kernel()) != 0) continue;
    cuda::CUfunction function = nullptr;
    const CUresult got = cu_.cuModuleGetFunction(&function, module_, launch.kernel().c_str());
    if (got != cuda::CUDA_SUCCESS) {
      EndWith(got == cuda::CUDA_ERROR_NOT_SUPPORTED ? GuestFault::NOT_EMULATED
                                                    : GuestFault::LOAD_FAILED,
              got, absl::StrCat("kernel ", launch.kernel()));
      return signatures;
    }
    kernels_[launch.kernel()] = function;
    int bytes = 0;
    ASSAY_RETURN_IF_ERROR(driver_->Check(
        cu_.cuFuncGetAttribute(&bytes, cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
        "cuFuncGetAttribute"));
    known->static_shared_bytes = bytes;
  }
  return signatures;
}

absl::Status DeviceSession::Plan(const std::string& ptx) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<KernelSignature> signatures, Signatures(ptx));
  if (end_.has_value()) return absl::OkStatus();
  int shared = 0;
  ASSAY_RETURN_IF_ERROR(
      driver_->Check(cu_.cuDeviceGetAttribute(
                         &shared, cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0),
                     "cuDeviceGetAttribute"));
  PlanLimits limits;
  limits.shared_bytes_max = shared;
  absl::StatusOr<ResolvedPlan> plan = ResolvePlan(*options_.candidate, options_.workload,
                                                  options_.configuration, limits, signatures);
  if (!plan.ok()) {
    end_ = GuestEnd{};
    end_->kind = GuestFault::PLAN_INVALID;
    end_->check = GetReason(plan.status());
    end_->message = std::string(plan.status().message());
    return absl::OkStatus();
  }
  plan_ = *std::move(plan);
  for (const ResolvedLaunch& launch : plan_.launches) {
    if (launch.shared_bytes <= kSharedWithoutOptIn) continue;
    const CUresult set = cu_.cuFuncSetAttribute(
        kernels_[launch.kernel], cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        static_cast<int>(launch.shared_bytes));
    if (set != cuda::CUDA_SUCCESS) EndWith(GuestFault::PLAN_INVALID, set, "dynamic shared memory");
  }
  return absl::OkStatus();
}

absl::Status DeviceSession::Allocate(DeviceBuffer* buffer) {
  if (buffer->bytes == 0) return absl::OkStatus();
  const CUresult got = cu_.cuMemAlloc(&buffer->address, buffer->bytes);
  if (got == cuda::CUDA_ERROR_OUT_OF_MEMORY) {
    end_ = GuestEnd{};
    end_->kind = GuestFault::MEMORY_LIMIT;
    end_->message = absl::StrCat("tensors and workspaces do not fit into the ", kDeviceBytes >> 20,
                                 " MiB of the emulated device");
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(driver_->Check(got, "cuMemAlloc"));
  return driver_->Check(
      driver_->emulator().assayEmulatorSetBuffer(
          buffer->address, buffer->writable ? cuda::kAssayEmulatorPlain : cuda::kAssayEmulatorInput,
          buffer->name.c_str()),
      "naming a buffer");
}

absl::Status DeviceSession::AllocateAll() {
  for (const ResolvedWorkspace& workspace : plan_.workspaces) {
    workspaces_.push_back({workspace.name, static_cast<size_t>(workspace.bytes), true, {}, 0});
  }
  for (std::vector<DeviceBuffer>* buffers : {&tensors_, &workspaces_}) {
    for (DeviceBuffer& buffer : *buffers) {
      ASSAY_RETURN_IF_ERROR(Allocate(&buffer));
      if (end_.has_value()) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceSession::Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                                 const std::vector<int64_t>& axes) {
  for (const GuestBuffer& buffer : buffers) {
    tensors_.push_back(
        {buffer.name, buffer.bytes, buffer.writable, std::vector<std::byte>(buffer.bytes), 0});
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string ptx, ReadAll(artifact_fd));
  CallConditions gaps;
  gaps.order = options_.seed;
  ASSAY_RETURN_IF_ERROR(Configure(gaps));
  ASSAY_RETURN_IF_ERROR(LoadModule(ptx));
  if (!end_.has_value()) ASSAY_RETURN_IF_ERROR(Plan(ptx));
  if (!end_.has_value()) ASSAY_RETURN_IF_ERROR(AllocateAll());
  return absl::OkStatus();
}

// What a call finds: inputs as the runner wrote them, and nothing in outputs and workspaces.
absl::Status DeviceSession::Refill(DeviceBuffer* buffer) {
  if (buffer->address == 0) return absl::OkStatus();
  if (buffer->host.empty()) {
    ASSAY_RETURN_IF_ERROR(
        driver_->Check(cu_.cuMemsetD8(buffer->address, kPoison, buffer->bytes), "cuMemsetD8"));
  } else {
    ASSAY_RETURN_IF_ERROR(driver_->Check(
        cu_.cuMemcpyHtoD(buffer->address, buffer->host.data(), buffer->bytes), "cuMemcpyHtoD"));
  }
  if (!buffer->writable) return absl::OkStatus();
  return driver_->Check(driver_->emulator().assayEmulatorPoison(buffer->address, buffer->bytes),
                        "poisoning a buffer");
}

CUresult DeviceSession::LaunchAll() {
  for (const ResolvedLaunch& launch : plan_.launches) {
    std::vector<uint64_t> values;
    for (const PlanArgument& argument : launch.arguments) {
      switch (argument.kind) {
        case PlanArgument::Kind::kTensor:
          values.push_back(tensors_[static_cast<size_t>(argument.index)].address);
          break;
        case PlanArgument::Kind::kWorkspace:
          values.push_back(workspaces_[static_cast<size_t>(argument.index)].address);
          break;
        case PlanArgument::Kind::kInteger:
          values.push_back(argument.bits);
          break;
      }
    }
    std::vector<void*> pointers;
    for (uint64_t& value : values) pointers.push_back(&value);
    const CUresult launched = cu_.cuLaunchKernel(
        kernels_[launch.kernel], launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
        launch.block[1], launch.block[2], static_cast<unsigned int>(launch.shared_bytes), nullptr,
        pointers.data(), nullptr);
    if (launched != cuda::CUDA_SUCCESS) return launched;
  }
  return cu_.cuCtxSynchronize();
}

void DeviceSession::TakeReport() {
  (void)driver_->emulator().assayEmulatorTakeReport(
      [](void* user, const AssayEmulatorReport* report) {
        auto* const self = static_cast<DeviceSession*>(user);
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

std::optional<CallTiming> DeviceSession::Call(GuestCache cache, absl::Duration timeout,
                                              const std::function<void()>& once_armed) {
  if (end_.has_value()) return std::nullopt;
  if (once_armed) once_armed();
  absl::Status ready = Configure(conditions_);
  if (ready.ok())
    ready = driver_->Check(driver_->emulator().assayEmulatorResetVariables(module_),
                           "resetting variables");
  for (std::vector<DeviceBuffer>* buffers : {&tensors_, &workspaces_}) {
    for (DeviceBuffer& buffer : *buffers) {
      if (ready.ok()) ready = Refill(&buffer);
    }
  }
  if (!ready.ok()) {
    end_ = GuestEnd{};
    end_->message = std::string(ready.message());
    return std::nullopt;
  }
  const CUresult ran = LaunchAll();
  TakeReport();
  if (!end_.has_value() && ran != cuda::CUDA_SUCCESS) {
    EndWith(
        ran == cuda::CUDA_ERROR_NOT_SUPPORTED ? GuestFault::NOT_EMULATED : GuestFault::DEVICE_TRAP,
        ran, "a launch");
  }
  if (end_.has_value()) return std::nullopt;
  for (DeviceBuffer& tensor : tensors_) {
    if (!tensor.writable || tensor.address == 0) continue;
    const CUresult copied = cu_.cuMemcpyDtoH(tensor.host.data(), tensor.address, tensor.bytes);
    if (copied != cuda::CUDA_SUCCESS) {
      end_ = GuestEnd{};
      end_->message = absl::StrCat("cuMemcpyDtoH: ", driver_->ErrorName(copied));
      return std::nullopt;
    }
  }
  return CallTiming();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuestSession>> MakeDeviceSession(DeviceSessionOptions options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<CudaDriver> driver, CudaDriver::Load(options.driver));
  if (!driver->is_emulated()) {
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, "DRIVER_NOT_EMULATED",
        absl::StrCat(options.driver,
                     " is a real CUDA driver; this release judges on the emulated one only"));
  }
  return std::make_unique<DeviceSession>(std::move(options), std::move(driver));
}

}  // namespace assay
