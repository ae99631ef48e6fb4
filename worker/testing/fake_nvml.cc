// A small NVML: one device. With ASSAY_FAKE_NVML_OLD it is an old one, without most functions.
#include "worker/testing/fake_nvml.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr int kInvalidArgument = 2;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

assay::FakeNvml state;

template <typename T>
int Answer(T value, T* to) {
  if (state.result == 0) *to = value;
  return state.result;
}

int Handle(const std::string& known, const char* asked, void** device) {
  if (known.empty() || known != asked) return kNotFound;
  *device = &state;
  return 0;
}

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

}  // namespace

extern "C" {

assay::FakeNvml* assayFakeNvml() { return &state; }

int nvmlInit_v2() {
  if (state.init_result == 0) ++state.starts;
  return state.init_result;
}

int nvmlShutdown() {
  ++state.stops;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  return Handle(state.pci_bus_id, id, device);
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (device != &state || sensor != 0) return kInvalidArgument;
  return Answer(state.celsius, celsius);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return Answer(state.reasons, reasons);
}

#ifndef ASSAY_FAKE_NVML_OLD
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  return Handle(state.uuid, uuid, device);
}

int nvmlSystemGetDriverVersion(char* version, unsigned bytes) {
  std::strncpy(version, "575.1", bytes);
  return 0;
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  if (device != &state || (clock != 1 && clock != 2)) return kInvalidArgument;
  return Answer(clock == 1 ? state.sm_mhz : state.memory_mhz, mhz);
}

int nvmlDeviceGetMaxClockInfo(void* device, int clock, unsigned* mhz) {
  return clock == 1 ? Answer(1980u, mhz) : kInvalidArgument;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return Answer(state.milliwatts, milliwatts);
}

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  return Answer(400'000u, milliwatts);
}

// Goes before the old name of the same question.
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  return Answer(state.reasons | 0x1000, reasons);
}

int nvmlDeviceGetPersistenceMode(void* device, unsigned* enabled) {
  return Answer(state.persistence, enabled);
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 1;
  return Answer(state.mig, current);
}

int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, unsigned long long* count) {
  if (kind != 1 || counter != 0) return kInvalidArgument;
  return Answer(state.ecc_errors, count);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* processes) {
  if (state.process_result != 0) return state.process_result;
  const auto there = static_cast<unsigned>(state.processes.size());
  const bool fits = there <= *count;
  *count = there;
  if (!fits) return kInsufficientSize;
  for (const assay::FakeNvml::Process& process : state.processes) {
    *processes++ = {process.pid, process.memory, 0, 0};
  }
  return 0;
}
#endif

}  // extern "C"
