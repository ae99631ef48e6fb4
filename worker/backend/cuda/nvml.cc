#include "worker/backend/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

// The part of NVML's ABI that is called here; numbers and layouts are those of its documentation.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kTemperatureOfGpu = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kUncorrectedErrors = 1;
constexpr int kVolatileCounts = 0;
constexpr unsigned kProcessesMax = 1024;
constexpr uint64_t kMemoryNotTold = ~uint64_t{0};

// Of the second and third form of the process list.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace

// X(member, symbols in the order in which they are tried, parameters)
#define ASSAY_NVML_FUNCTIONS(X)                                                               \
  X(Init, ("nvmlInit_v2"), ())                                                                \
  X(Shutdown, ("nvmlShutdown"), ())                                                           \
  X(HandleByUuid, ("nvmlDeviceGetHandleByUUID"), (const char* uuid, void** device))           \
  X(HandleByPciBusId, ("nvmlDeviceGetHandleByPciBusId_v2"), (const char* id, void** device))  \
  X(DriverVersion, ("nvmlSystemGetDriverVersion"), (char* version, unsigned bytes))           \
  X(ClockInfo, ("nvmlDeviceGetClockInfo"), (void* device, int clock, unsigned* mhz))          \
  X(MaxClockInfo, ("nvmlDeviceGetMaxClockInfo"), (void* device, int clock, unsigned* mhz))    \
  X(Temperature, ("nvmlDeviceGetTemperature"), (void* device, int sensor, unsigned* celsius)) \
  X(PowerUsage, ("nvmlDeviceGetPowerUsage"), (void* device, unsigned* milliwatts))            \
  X(PowerLimit, ("nvmlDeviceGetEnforcedPowerLimit"), (void* device, unsigned* milliwatts))    \
  X(ClockEvents,                                                                              \
    ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),  \
    (void* device, unsigned long long* reasons))                                              \
  X(PersistenceMode, ("nvmlDeviceGetPersistenceMode"), (void* device, unsigned* enabled))     \
  X(MigMode, ("nvmlDeviceGetMigMode"), (void* device, unsigned* current, unsigned* pending))  \
  X(EccErrors, ("nvmlDeviceGetTotalEccErrors"),                                               \
    (void* device, int kind, int counter, unsigned long long* count))                         \
  X(Processes,                                                                                \
    ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),   \
    (void* device, unsigned* count, ProcessInfo* processes))

#define ASSAY_NVML_UNWRAP(...) __VA_ARGS__

struct Nvml::Functions {
#define ASSAY_NVML_MEMBER(member, symbols, parameters) int(*member) parameters = nullptr;
  ASSAY_NVML_FUNCTIONS(ASSAY_NVML_MEMBER)
#undef ASSAY_NVML_MEMBER

  explicit Functions(void* library) {
#define ASSAY_NVML_LOAD(member, symbols, parameters)                      \
  for (const char* const symbol : {ASSAY_NVML_UNWRAP symbols}) {          \
    if (member != nullptr) break;                                         \
    member = reinterpret_cast<int(*) parameters>(dlsym(library, symbol)); \
  }
    ASSAY_NVML_FUNCTIONS(ASSAY_NVML_LOAD)
#undef ASSAY_NVML_LOAD
  }
};

namespace {

// What `function` answers; nullopt when it is missing or answers an error.
template <typename Value, typename... Given, typename... Parameters>
std::optional<Value> Ask(int (*function)(Parameters...), Given... given) {
  Value value = {};
  if (function == nullptr || function(given..., &value) != kSuccess) return std::nullopt;
  return value;
}

}  // namespace

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

Nvml::~Nvml() {
  if (functions_->Shutdown != nullptr) functions_->Shutdown();
}

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Open(const Options& options) {
  void* const library = dlopen(options.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("NVML cannot be loaded (", options.library,
                     "), so clocks and health are unknown; it comes with the NVIDIA driver"));
  }
  auto functions = std::make_unique<Functions>(library);
  if (functions->Init == nullptr) {
    return absl::UnavailableError(absl::StrCat(options.library, " is no NVML: no nvmlInit_v2"));
  }
  if (const int result = functions->Init(); result != kSuccess) {
    return absl::UnavailableError(absl::StrCat("NVML does not start: error ", result));
  }
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(functions)));
  ASSAY_RETURN_IF_ERROR(nvml->FindDevice(options));
  return nvml;
}

absl::Status Nvml::FindDevice(const Options& options) {
  std::vector<std::string> tried;
  if (options.uuid.has_value() && functions_->HandleByUuid != nullptr) {
    for (const char* const prefix : {"GPU-", "MIG-"}) {
      tried.push_back(NvmlUuid(prefix, *options.uuid));
      if (functions_->HandleByUuid(tried.back().c_str(), &device_) == kSuccess) {
        return absl::OkStatus();
      }
    }
  }
  if (!options.pci_bus_id.empty() && functions_->HandleByPciBusId != nullptr) {
    tried.push_back(options.pci_bus_id);
    if (functions_->HandleByPciBusId(options.pci_bus_id.c_str(), &device_) == kSuccess) {
      return absl::OkStatus();
    }
  }
  return absl::NotFoundError(
      absl::StrCat("NVML knows no device ", absl::StrJoin(tried, " or "),
                   "; in a container, its devices must be those of the CUDA driver"));
}

std::optional<DeviceHealth> Nvml::Sample() {
  const auto sm_clock = Ask<unsigned>(functions_->ClockInfo, device_, kClockSm);
  const auto memory_clock = Ask<unsigned>(functions_->ClockInfo, device_, kClockMemory);
  const auto temperature = Ask<unsigned>(functions_->Temperature, device_, kTemperatureOfGpu);
  const auto power = Ask<unsigned>(functions_->PowerUsage, device_);
  const auto reasons = Ask<unsigned long long>(functions_->ClockEvents, device_);
  if (!sm_clock && !memory_clock && !temperature && !power && !reasons) return std::nullopt;
  DeviceHealth health;
  health.sm_clock_mhz = static_cast<int>(sm_clock.value_or(0));
  health.memory_clock_mhz = static_cast<int>(memory_clock.value_or(0));
  health.temperature_c = static_cast<int>(temperature.value_or(0));
  health.power_w = power.value_or(0) / 1e3;
  health.throttle_bits = reasons.value_or(0);
  return health;
}

NvmlFacts Nvml::Facts() {
  NvmlFacts facts;
  char version[96] = {};
  if (functions_->DriverVersion != nullptr &&
      functions_->DriverVersion(version, sizeof version - 1) == kSuccess) {
    facts.driver_version = version;
  }
  if (const auto on = Ask<unsigned>(functions_->PersistenceMode, device_)) {
    facts.persistence_mode = *on != 0;
  }
  unsigned current = 0;
  unsigned pending = 0;
  if (functions_->MigMode != nullptr &&
      functions_->MigMode(device_, &current, &pending) == kSuccess) {
    facts.mig_mode = current != 0;
  }
  if (const auto count = Ask<unsigned long long>(functions_->EccErrors, device_, kUncorrectedErrors,
                                                 kVolatileCounts)) {
    facts.uncorrected_ecc_errors = *count;
  }
  if (const auto limit = Ask<unsigned>(functions_->PowerLimit, device_)) {
    facts.power_limit_w = *limit / 1e3;
  }
  if (const auto clock = Ask<unsigned>(functions_->MaxClockInfo, device_, kClockSm)) {
    facts.sm_clock_max_mhz = static_cast<int>(*clock);
  }
  return facts;
}

std::optional<std::vector<GpuProcess>> Nvml::OtherProcesses() {
  if (functions_->Processes == nullptr) return std::nullopt;
  std::vector<ProcessInfo> found(16);
  while (true) {
    auto count = static_cast<unsigned>(found.size());
    const int result = functions_->Processes(device_, &count, found.data());
    if (result == kSuccess) {
      found.resize(std::min<size_t>(count, found.size()));
      break;
    }
    // Processes may come while we ask, so there is room for some more than it says.
    if (result != kInsufficientSize || found.size() >= kProcessesMax) return std::nullopt;
    found.resize(std::min<size_t>(kProcessesMax, std::max<size_t>(count, found.size()) + 16));
  }
  std::vector<GpuProcess> others;
  for (const ProcessInfo& process : found) {
    if (process.pid == static_cast<unsigned>(getpid())) continue;
    GpuProcess other;
    other.pid = process.pid;
    if (process.used_memory != kMemoryNotTold) other.memory_bytes = process.used_memory;
    others.push_back(other);
  }
  std::sort(others.begin(), others.end(),
            [](const GpuProcess& a, const GpuProcess& b) { return a.pid < b.pid; });
  return others;
}

std::string NvmlUuid(std::string_view prefix, const cuda::CUuuid& uuid) {
  std::string text = std::string(prefix);
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string ThrottleText(uint64_t bits) {
  constexpr struct {
    uint64_t bit;
    const char* name;
  } kNames[] = {{kThrottleIdle, "idle"},
                {kThrottleApplicationClocks, "application clocks"},
                {kThrottlePowerCap, "power cap"},
                {kThrottleHardwareSlowdown, "hardware slowdown"},
                {kThrottleSyncBoost, "sync boost"},
                {kThrottleSoftwareThermal, "software thermal"},
                {kThrottleHardwareThermal, "hardware thermal"},
                {kThrottlePowerBrake, "power brake"},
                {kThrottleDisplayClock, "display clock"}};
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames) {
    if ((bits & bit) != 0) names.push_back(name);
    bits &= ~bit;
  }
  if (bits != 0) names.push_back(absl::StrFormat("0x%x", bits));
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

}  // namespace assay
