#include "tests/gpu/kernel_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "base/status.h"
#include "kernels/plan/plan.h"
#include "worker/backend/cuda/ptx_signature.h"

namespace assay {
namespace {

using cuda::CUdeviceptr;

constexpr unsigned char kPoison = 0xff;  // NaN in every floating-point type
constexpr unsigned char kGuard = 0xa5;
constexpr size_t kGuardBytes = 64 << 10;
constexpr int64_t kSharedWithoutOptIn = 48 << 10;
constexpr double kNsPerMs = 1e6;
constexpr uint64_t kEmulatedBytes = uint64_t{4} << 30;

class KernelRun {
 public:
  KernelRun(const GpuTarget& target, const KernelJob& job)
      : target_(target), job_(job), driver_(*target.driver), cu_(driver_.functions()) {}
  ~KernelRun() {
    if (context_ != nullptr) (void)cu_.cuCtxDestroy(context_);
  }

  absl::StatusOr<KernelOutcome> Run(int timed_runs) {
    ASSAY_RETURN_IF_ERROR(Start());
    ASSAY_RETURN_IF_ERROR(Plan());
    ASSAY_RETURN_IF_ERROR(AllocateAll());
    ASSAY_RETURN_IF_ERROR(LaunchAll());
    ASSAY_RETURN_IF_ERROR(Explain(driver_.Check(cu_.cuCtxSynchronize(), "cuCtxSynchronize")));
    ASSAY_RETURN_IF_ERROR(CheckGuards());
    KernelOutcome outcome;
    ASSAY_RETURN_IF_ERROR(ReadOutputs(&outcome.outputs));
    if (!driver_.is_emulated()) ASSAY_RETURN_IF_ERROR(TakeTimes(timed_runs, &outcome.times_ns));
    return outcome;
  }

 private:
  struct Buffer {
    std::string name;
    size_t bytes = 0;
    bool writable = false;
    CUdeviceptr base = 0;     // of the allocation
    CUdeviceptr address = 0;  // of the bytes
  };

  absl::Status Start();
  absl::Status Plan();
  absl::StatusOr<std::vector<KernelSignature>> Signatures();
  absl::Status AllocateAll();
  absl::Status Allocate(Buffer* buffer, const std::vector<std::byte>* content);
  absl::Status LaunchAll();
  // What the emulated device has to say of `status`; a fault that it found is an error in any case.
  absl::Status Explain(absl::Status status);
  absl::Status CheckGuards();
  absl::Status CheckGuard(const Buffer& buffer, CUdeviceptr zone, bool is_after);
  absl::Status ReadOutputs(TensorBytes* outputs);
  absl::Status TakeTimes(int runs, std::vector<double>* times_ns);

  const GpuTarget& target_;
  const KernelJob& job_;
  const CudaDriver& driver_;
  const cuda::DriverFunctions& cu_;
  cuda::CUcontext context_ = nullptr;
  cuda::CUmodule module_ = nullptr;
  std::map<std::string, cuda::CUfunction> kernels_;
  ResolvedPlan plan_;
  std::vector<Buffer> tensors_;
  std::vector<Buffer> workspaces_;
};

absl::Status KernelRun::Start() {
  if (driver_.is_emulated()) {
    cuda::AssayEmulatorOptions options = {};
    options.struct_bytes = sizeof options;
    options.arch = static_cast<uint32_t>(target_.arch);
    options.seed = target_.seed;
    options.host_threads = static_cast<uint32_t>(target_.host_threads);
    options.check_races = 1;
    options.device_bytes = kEmulatedBytes;
    ASSAY_RETURN_IF_ERROR(driver_.Check(driver_.emulator().assayEmulatorConfigure(&options),
                                        "configuring the emulated device"));
  }
  cuda::CUdevice device = 0;
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuInit(0), "cuInit"));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuDeviceGet(&device, target_.ordinal), "cuDeviceGet"));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuCtxCreate(&context_, 0, device), "cuCtxCreate"));
  (void)Explain(absl::OkStatus());  // forgets what another run left behind
  return Explain(
      driver_.Check(cu_.cuModuleLoadData(&module_, job_.ptx->c_str()), "cuModuleLoadData"));
}

absl::StatusOr<std::vector<KernelSignature>> KernelRun::Signatures() {
  std::vector<KernelSignature> signatures = ScanPtxKernels(*job_.ptx);
  for (KernelSignature& signature : signatures) {
    cuda::CUfunction function = nullptr;
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuModuleGetFunction(&function, module_, signature.name.c_str()),
                      "cuModuleGetFunction"));
    kernels_[signature.name] = function;
    int bytes = 0;
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu_.cuFuncGetAttribute(&bytes, cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
        "cuFuncGetAttribute"));
    signature.static_shared_bytes = bytes;
  }
  return signatures;
}

absl::Status KernelRun::Plan() {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<KernelSignature> signatures, Signatures());
  int shared = 0;
  ASSAY_RETURN_IF_ERROR(driver_.Check(
      cu_.cuDeviceGetAttribute(&shared, cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                               target_.ordinal),
      "cuDeviceGetAttribute"));
  PlanLimits limits;
  limits.shared_bytes_max = shared;
  ASSAY_ASSIGN_OR_RETURN(
      plan_, ResolvePlan(*job_.spec, *job_.workload, *job_.configuration, limits, signatures));
  for (const ResolvedLaunch& launch : plan_.launches) {
    if (launch.shared_bytes <= kSharedWithoutOptIn) continue;
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuFuncSetAttribute(kernels_[launch.kernel],
                                             cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                             static_cast<int>(launch.shared_bytes)),
                      "cuFuncSetAttribute"));
  }
  return absl::OkStatus();
}

absl::Status KernelRun::Allocate(Buffer* buffer, const std::vector<std::byte>* content) {
  if (buffer->bytes == 0) return absl::OkStatus();
  const size_t guard = target_.guard_zones ? kGuardBytes : 0;
  const size_t total = guard + buffer->bytes + guard;
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuMemAlloc(&buffer->base, total), "cuMemAlloc"));
  buffer->address = buffer->base + guard;
  if (guard > 0) {
    ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuMemsetD8(buffer->base, kGuard, total), "cuMemsetD8"));
  }
  if (content != nullptr) {
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu_.cuMemcpyHtoD(buffer->address, content->data(), buffer->bytes), "cuMemcpyHtoD"));
  } else {
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuMemsetD8(buffer->address, kPoison, buffer->bytes), "cuMemsetD8"));
  }
  if (!driver_.is_emulated()) return absl::OkStatus();
  const cuda::EmulatorFunctions& emulator = driver_.emulator();
  ASSAY_RETURN_IF_ERROR(driver_.Check(
      emulator.assayEmulatorSetBuffer(
          buffer->base, buffer->writable ? cuda::kAssayEmulatorPlain : cuda::kAssayEmulatorInput,
          buffer->name.c_str()),
      "naming a buffer"));
  if (!buffer->writable) return absl::OkStatus();
  return driver_.Check(emulator.assayEmulatorPoison(buffer->address, buffer->bytes),
                       "poisoning a buffer");
}

absl::Status KernelRun::AllocateAll() {
  for (size_t i = 0; i < job_.workload->tensors.size(); ++i) {
    const TensorShape& tensor = job_.workload->tensors[i];
    tensors_.push_back({tensor.name, static_cast<size_t>(tensor.bytes), tensor.is_output});
    ASSAY_RETURN_IF_ERROR(
        Allocate(&tensors_.back(), tensor.is_output ? nullptr : &(*job_.inputs)[i]));
  }
  for (const ResolvedWorkspace& workspace : plan_.workspaces) {
    workspaces_.push_back({workspace.name, static_cast<size_t>(workspace.bytes), true});
    ASSAY_RETURN_IF_ERROR(Allocate(&workspaces_.back(), nullptr));
  }
  // Filling is asynchronous to the host, and launches go to the same stream.
  return absl::OkStatus();
}

absl::Status KernelRun::LaunchAll() {
  for (const ResolvedLaunch& launch : plan_.launches) {
    std::vector<uint64_t> values;
    for (const PlanArgument& argument : launch.arguments) {
      const auto index = static_cast<size_t>(argument.index);
      values.push_back(argument.kind == PlanArgument::Kind::kTensor ? tensors_[index].address
                       : argument.kind == PlanArgument::Kind::kWorkspace
                           ? workspaces_[index].address
                           : argument.bits);
    }
    std::vector<void*> pointers;
    for (uint64_t& value : values) pointers.push_back(&value);
    const cuda::CUresult launched = cu_.cuLaunchKernel(
        kernels_[launch.kernel], launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
        launch.block[1], launch.block[2], static_cast<unsigned int>(launch.shared_bytes), nullptr,
        pointers.data(), nullptr);
    const absl::Status status = driver_.Check(launched, launch.kernel.c_str());
    if (!status.ok()) return Explain(status);
  }
  return absl::OkStatus();
}

absl::Status KernelRun::Explain(absl::Status status) {
  if (!driver_.is_emulated()) return status;
  struct Found {
    std::string fault;
    std::string last_error;
  } found;
  (void)driver_.emulator().assayEmulatorTakeReport(
      [](void* user, const cuda::AssayEmulatorReport* report) {
        auto* const to = static_cast<Found*>(user);
        to->last_error = report->last_error;
        if (report->fault_count == 0) return;
        const cuda::AssayEmulatorFault& fault = report->faults[0];
        to->fault = absl::StrCat("the emulated device found ", fault.kind_name, " in kernel ",
                                 fault.kernel, ", PTX line ", fault.ptx_line, ": ", fault.message);
      },
      &found);
  if (!found.fault.empty()) return absl::AbortedError(found.fault);
  if (status.ok() || found.last_error.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), ": ", found.last_error));
}

absl::Status KernelRun::CheckGuard(const Buffer& buffer, CUdeviceptr zone, bool is_after) {
  std::vector<unsigned char> bytes(kGuardBytes);
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuMemcpyDtoH(bytes.data(), zone, bytes.size()), "cuMemcpyDtoH"));
  const auto intact = [](unsigned char byte) { return byte == kGuard; };
  if (is_after) {
    const auto first = std::find_if_not(bytes.begin(), bytes.end(), intact);
    if (first == bytes.end()) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat("a kernel wrote past the end of ", buffer.name, ", ",
                                           first - bytes.begin(), " bytes behind it"));
  }
  const auto last = std::find_if_not(bytes.rbegin(), bytes.rend(), intact);
  if (last == bytes.rend()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("a kernel wrote before the start of ", buffer.name, ", ",
                                         last - bytes.rbegin() + 1, " bytes in front of it"));
}

absl::Status KernelRun::CheckGuards() {
  if (!target_.guard_zones) return absl::OkStatus();
  for (const std::vector<Buffer>* const buffers : {&tensors_, &workspaces_}) {
    for (const Buffer& buffer : *buffers) {
      if (buffer.bytes == 0) continue;
      ASSAY_RETURN_IF_ERROR(CheckGuard(buffer, buffer.base, false));
      ASSAY_RETURN_IF_ERROR(CheckGuard(buffer, buffer.address + buffer.bytes, true));
    }
  }
  return absl::OkStatus();
}

absl::Status KernelRun::ReadOutputs(TensorBytes* outputs) {
  outputs->resize(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].writable || tensors_[i].bytes == 0) continue;
    (*outputs)[i].resize(tensors_[i].bytes);
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu_.cuMemcpyDtoH((*outputs)[i].data(), tensors_[i].address, tensors_[i].bytes),
        "cuMemcpyDtoH"));
  }
  return absl::OkStatus();
}

absl::Status KernelRun::TakeTimes(int runs, std::vector<double>* times_ns) {
  cuda::CUevent start = nullptr;
  cuda::CUevent stop = nullptr;
  if (runs == 0) return absl::OkStatus();
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuEventCreate(&start, cuda::CU_EVENT_DEFAULT), "cuEventCreate"));
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuEventCreate(&stop, cuda::CU_EVENT_DEFAULT), "cuEventCreate"));
  for (int i = 0; i < runs; ++i) {
    // The run before keeps the device busy while the host submits the one that is timed.
    ASSAY_RETURN_IF_ERROR(LaunchAll());
    ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuEventRecord(start, nullptr), "cuEventRecord"));
    ASSAY_RETURN_IF_ERROR(LaunchAll());
    ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuEventRecord(stop, nullptr), "cuEventRecord"));
    ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuEventSynchronize(stop), "cuEventSynchronize"));
    float ms = 0;
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuEventElapsedTime(&ms, start, stop), "cuEventElapsedTime"));
    times_ns->push_back(static_cast<double>(ms) * kNsPerMs);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelOutcome> RunKernels(const GpuTarget& target, const KernelJob& job,
                                         int timed_runs) {
  return KernelRun(target, job).Run(timed_runs);
}

}  // namespace assay
