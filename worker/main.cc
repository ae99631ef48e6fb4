// assay-worker: wiring only.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/channel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"
#include "worker/agent/agent.h"
#include "worker/agent/canary.h"
#include "worker/agent/device_backend.h"
#include "worker/agent/gpu_calibration.h"
#include "worker/agent/pipeline.h"
#include "worker/agent/runner_pool.h"
#include "worker/agent/transport.h"
#include "worker/backend/cuda/driver.h"
#include "worker/builder/builder.h"
#include "worker/ceiling/calibrate.h"
#include "worker/measure/machine.h"
#include "worker/options.h"
#include "worker/runner/runner_client.h"
#include "worker/sandbox/required_walls.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

constexpr char kHarnessVersion[] = "assay-0.1.0";
constexpr int kExitInfrastructure = 2;

CalibrateOptions CalibrationOptions(const MachineFacts& machine, bool quick) {
  CalibrateOptions options;
  options.machine = machine;
  if (quick) {
    options.point_time = absl::Milliseconds(4);
    options.all_cores = false;
    options.footprint_bytes_max = int64_t{64} << 20;
  }
  return options;
}

std::string BinaryFolder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

const char* CudaDriverPath() {
  // Runners have no environment by which a linker would find it elsewhere.
  const char* const driver = std::getenv("ASSAY_CUDA_DRIVER");
  return driver != nullptr && *driver != '\0' ? driver : kCudaDriverLibrary;
}

// What this worker knows of the limits of its device.
struct Ceilings {
  std::string path;  // where they are kept
  std::function<absl::Status(v1::Calibration*)> measure;
  std::shared_ptr<v1::Calibration> calibration;  // null: nothing is known
};

// The stored ones, or fresh ones.
absl::Status Fill(const WorkerOptions& options, Ceilings* ceilings) {
  auto calibration = std::make_shared<v1::Calibration>();
  if (options.calibrate || !LoadCalibration(ceilings->path, calibration.get()).ok()) {
    Log(LogLevel::kInfo, "calibrating");
    ASSAY_RETURN_IF_ERROR(ceilings->measure(calibration.get()));
    ASSAY_RETURN_IF_ERROR(SaveCalibration(ceilings->path, *calibration));
  }
  ceilings->calibration = std::move(calibration);
  return absl::OkStatus();
}

absl::StatusOr<Ceilings> CpuCeilings(const WorkerOptions& options, const MachineFacts& machine) {
  Ceilings ceilings;
  ceilings.path = CalibrationPath(options.state_directory, machine, options.quick_calibration);
  CalibrateOptions calibrate = CalibrationOptions(machine, options.quick_calibration);
  ceilings.measure = [&calibrate](v1::Calibration* known) { return Calibrate(calibrate, known); };
  ASSAY_RETURN_IF_ERROR(Fill(options, &ceilings));
  // The limits of one core are what a candidate is held to.
  calibrate.all_cores = false;
  ceilings.measure = [calibrate](v1::Calibration* known) { return Calibrate(calibrate, known); };
  return ceilings;
}

// An emulated device has none.
absl::StatusOr<Ceilings> DeviceCeilings(const WorkerOptions& options, const DeviceParts& device) {
  Ceilings ceilings;
  if (device.backend.is_emulated || options.quick_calibration) return ceilings;
  ceilings.path = GpuCalibrationPath(options.state_directory, device.uuid, device.driver_version);
  GpuCalibrationOptions calibrate;
  calibrate.program = BinaryFolder() + "/assay-gpu-ceilings";
  calibrate.driver = CudaDriverPath();
  calibrate.ordinal = options.device.ordinal;
  ceilings.measure = [calibrate](v1::Calibration* known) {
    return MeasureGpuCeilings(calibrate, known);
  };
  ASSAY_RETURN_IF_ERROR(Fill(options, &ceilings));
  return ceilings;
}

// "cpu", "emulated" or "cuda".
std::string DeviceKind(const WorkerOptions& options) {
  switch (options.device.kind) {
    case WorkerDevice::Kind::kEmulated:
      return "emulated";
    case WorkerDevice::Kind::kCuda:
      return "cuda";
    case WorkerDevice::Kind::kCpu:
      break;
  }
  return "cpu";
}

std::string DeviceName(const WorkerOptions& options) {
  const std::string number =
      options.device.ordinal == 0 ? "" : absl::StrCat("-", options.device.ordinal);
  return absl::StrCat("workers/", options.name, "/devices/", DeviceKind(options), number);
}

// `calibration` may be null: nothing is known of the ceilings. `parts` is null for the CPU.
std::shared_ptr<internal::v1::RegisterWorkerRequest> Describe(const WorkerOptions& options,
                                                              const MachineFacts& machine,
                                                              const std::string& compiler,
                                                              const v1::Calibration* calibration,
                                                              const DeviceParts* parts) {
  auto request = std::make_shared<internal::v1::RegisterWorkerRequest>();
  request->set_worker(options.name);
  // Timing needs the machine for itself.
  request->set_lease_count_max(1);
  v1::Worker& worker = *request->mutable_description();
  worker.set_name(absl::StrCat("workers/", options.name));
  worker.set_version(kHarnessVersion);
  v1::Device& device = *worker.add_devices();
  device.set_name(DeviceName(options));
  device.set_kind(DeviceKind(options));
  device.set_core_count(static_cast<int32_t>(machine.cores.size()));
  if (parts != nullptr) {
    device.set_device_class(parts->backend.device_class);
    device.set_model(parts->backend.model);
    if (!parts->backend.is_emulated) device.set_core_count(parts->multiprocessor_count);
    for (const std::string& caveat : parts->backend.caveats) device.add_caveats(caveat);
  } else {
    device.set_device_class(DeviceClassName(machine));
    device.set_model(machine.model_name);
    for (const std::string& caveat : machine.caveats) device.add_caveats(caveat);
  }
  if (calibration != nullptr) *device.mutable_calibration() = *calibration;
  v1::Environment& environment = *worker.mutable_environment();
  environment.set_harness_version(kHarnessVersion);
  environment.set_compiler(compiler);
  environment.set_instruction_set(InstructionSet(machine));
  environment.set_cpu_model(machine.model_name);
  environment.set_kernel(machine.kernel);
  if (parts != nullptr && !parts->backend.is_emulated) {
    environment.set_instruction_set(parts->backend.instruction_set);
    environment.set_device_model(parts->backend.model);
  }
  for (const WallProbe& wall : ProbeWalls()) {
    // A weaker one is missing; what stands instead is the operator's to weigh.
    if (wall.state == WallState::kStanding) {
      environment.add_walls(wall.name);
    } else {
      environment.add_missing_walls(wall.name);
    }
  }
  return request;
}

RunnerPoolOptions PoolOptions(const WorkerOptions& options, const CorePlacement& cores) {
  RunnerPoolOptions pool;
  const std::string folder = BinaryFolder();
  const bool allow_unsandboxed = options.allow_unsandboxed;
  // What never measures takes no core from what does.
  const bool background = options.device.kind == WorkerDevice::Kind::kEmulated;
  pool.start = [folder, cores, allow_unsandboxed, background](int slot, int guests) {
    RunnerOptions runner;
    runner.runner_binary = folder + "/assay-runner";
    runner.guest_binary = folder + "/assay-guest";
    runner.slot = slot;
    runner.guests = guests;
    runner.guest_core = cores.guest_core;
    runner.allow_unsandboxed = allow_unsandboxed;
    runner.background = background;
    return RunnerClient::Start(runner);
  };
  return pool;
}

// Runs the canary through the pipeline; OK when it passes.
absl::Status CheckSelf(bool device, Pipeline* pipeline) {
  internal::v1::WorkSpec canary;
  MakeCanary(device, &canary);
  v1::Outcome outcome;
  v1::Timeline timeline;
  const PipelineHooks hooks{[](std::string_view) {}, [] { return true; }};
  ASSAY_RETURN_IF_ERROR(pipeline->Judge(canary, hooks, &outcome, &timeline));
  if (outcome.verdict() == v1::PASSED) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the known-good candidate got ",
                                          v1::Verdict_Name(outcome.verdict()), ", ",
                                          outcome.reason(), ": ", outcome.message()));
}

absl::StatusOr<DeviceParts> MakeDevice(const WorkerOptions& options, RunnerSource* runners) {
  DevicePaths paths;
  paths.cache_directory = options.state_directory + "/device-artifacts";
  paths.nvrtc_helper = BinaryFolder() + "/assay-nvrtc";
  paths.emulated_driver = BinaryFolder() + "/libassay_emulated_cuda.so";
  paths.cuda_driver = CudaDriverPath();
  return options.device.kind == WorkerDevice::Kind::kCuda
             ? MakeCudaDevice(options.device.ordinal, paths, runners)
             : MakeEmulatedDevice(options.device.arch, paths);
}

absl::Status RunWorker(const WorkerOptions& options, sigset_t signals) {
  if (!options.required_walls.empty()) {
    ASSAY_RETURN_IF_ERROR(ProcessSlots().status());
    ASSAY_RETURN_IF_ERROR(CheckWalls(options.required_walls, ProbeWalls()));
  }
  ASSAY_ASSIGN_OR_RETURN(const Endpoint server, ReadEndpoint(options.server, options.files));
  const MachineFacts machine = ReadMachineFacts("");
  const CorePlacement cores = PlaceCores(machine);
  ASSAY_RETURN_IF_ERROR(CreateDirectories(options.state_directory));
  CppBuilderOptions builder_options;
  builder_options.cache_directory = options.state_directory + "/artifacts";
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Builder> builder, MakeCppBuilder(builder_options));
  const bool is_device = options.device.kind != WorkerDevice::Kind::kCpu;
  RunnerPool runners(PoolOptions(options, cores));
  Ceilings ceilings;
  DeviceParts device;
  if (is_device) {
    ASSAY_ASSIGN_OR_RETURN(device, MakeDevice(options, &runners));
    ASSAY_ASSIGN_OR_RETURN(ceilings, DeviceCeilings(options, device));
  } else {
    ASSAY_ASSIGN_OR_RETURN(ceilings, CpuCeilings(options, machine));
  }

  PipelineOptions pipeline_options;
  pipeline_options.builder = builder.get();
  pipeline_options.runners = &runners;
  pipeline_options.clock = SystemClock();
  pipeline_options.machine = machine;
  pipeline_options.cores = cores;
  pipeline_options.device_name = DeviceName(options);
  if (is_device) pipeline_options.device = device.backend;
  pipeline_options.harness_version = kHarnessVersion;
  pipeline_options.nonce = SecureRandom64;
  pipeline_options.calibration = ceilings.calibration;
  if (ceilings.calibration != nullptr) {
    pipeline_options.recalibrate = [&ceilings](v1::Calibration* known) {
      v1::Calibration fresh;
      ASSAY_RETURN_IF_ERROR(ceilings.measure(&fresh));
      MergeCalibration(fresh, known);
      return SaveCalibration(ceilings.path, *known);
    };
  }
  Pipeline pipeline(std::move(pipeline_options));
  // Before any lease: proves compiler, sandbox and runner, and warms the caches of each.
  ASSAY_RETURN_IF_ERROR(Annotate(CheckSelf(is_device, &pipeline), "this worker cannot judge"));

  const std::unique_ptr<DispatchTransport> transport = MakeGrpcTransport(server);
  AgentOptions agent_options;
  agent_options.transport = transport.get();
  agent_options.clock = SystemClock();
  const std::string compiler = is_device
                                   ? (device.cuda != nullptr ? device.cuda : device.ptx)->compiler()
                                   : builder->compiler();
  agent_options.description = Describe(options, machine, compiler, ceilings.calibration.get(),
                                       is_device ? &device : nullptr);
  agent_options.judge = [&pipeline](const internal::v1::WorkSpec& work, const PipelineHooks& hooks,
                                    v1::Outcome* outcome, v1::Timeline* timeline) {
    return pipeline.Judge(work, hooks, outcome, timeline);
  };
  agent_options.self_check = [&pipeline, is_device] { return CheckSelf(is_device, &pipeline); };
  agent_options.is_suspect = [&pipeline] { return pipeline.is_device_suspect(); };
  agent_options.on_registered = [&options] {
    std::printf("registered %s\n", options.name.c_str());
    std::fflush(stdout);
  };
  Agent agent(std::move(agent_options));
  std::thread signal_thread([&agent, &signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    agent.Drain();
  });
  const absl::Status status = agent.Run();
  // Wakes the signal thread when the loop ended by itself.
  kill(getpid(), SIGTERM);
  signal_thread.join();
  return status;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  // A runner that dies under a write is an error of that write.
  signal(SIGPIPE, SIG_IGN);
  // Blocked before any thread starts, so that only the signal thread takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const absl::StatusOr<assay::WorkerOptions> options =
      assay::ParseWorkerOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    std::fprintf(stderr, "assay-worker: %s\n%s\n",
                 assay::PrintableLine(assay::Sv(options.status().message())).c_str(),
                 assay::kWorkerUsage);
    return assay::kExitInfrastructure;
  }
  if (options->help) {
    std::puts(assay::kWorkerUsage);
    return 0;
  }
  const absl::Status status = assay::RunWorker(*options, signals);
  if (status.ok()) return 0;
  assay::Log(assay::LogLevel::kError, "worker_stopped",
             {{"code", absl::StatusCodeToString(status.code())},
              {"reason", assay::GetReason(status)},
              {"message", std::string(status.message())}});
  return assay::kExitInfrastructure;
}
