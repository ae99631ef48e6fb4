#include "emulator/driver/state.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "base/strings.h"
#include "emulator/driver/results.h"

namespace assay::emulator {

using cuda::CUresult;

namespace {

absl::StatusOr<std::unique_ptr<DeviceMemory>> MakeMemory(const EmulatorSettings& settings) {
  DeviceMemory::Options options;
  options.bytes = settings.device_bytes;
  options.seed = settings.seed;
  return DeviceMemory::Create(options);
}

}  // namespace

void ReportSink::Add(LaunchResult result) {
  ++launches;
  if (result.stopped) ++launches_stopped;
  counters.Add(result.counters);
  for (Fault& fault : result.faults) {
    if (faults.size() < kReportFaultsMax) {
      faults.push_back(std::move(fault));
    } else {
      ++faults_dropped;
    }
  }
  const size_t room = kReportOutputBytesMax - output.size();
  const size_t taken = std::min(room, result.output.size());
  output.append(result.output, 0, taken);
  output_bytes_dropped += result.output.size() - taken;
}

State& State::Get() {
  static State& state = *new State;
  return state;
}

std::vector<cuda::CUcontext>& ThreadContexts() {
  thread_local std::vector<cuda::CUcontext> contexts;
  return contexts;
}

const DeviceModel& State::model() const { return *FindDeviceModel(settings.arch); }

CUresult State::Fail(CUresult result, std::string_view message) {
  report.last_error = message.substr(0, kErrorBytesMax);
  return result;
}

CUresult State::Fail(const absl::Status& status) {
  return Fail(ResultOfStatus(status), Sv(status.message()));
}

CUresult State::MakeContext(unsigned int flags, cuda::CUcontext* context) {
  if (contexts.size() >= kObjectsMax) {
    return Fail(cuda::CUDA_ERROR_OUT_OF_MEMORY, "too many contexts; destroy some");
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = MakeMemory(settings);
  if (!memory.ok()) return Fail(memory.status());
  auto object = std::make_unique<ContextObject>();
  object->handle = NextHandle<cuda::CUcontext>();
  object->id = handles;
  object->flags = flags;
  object->memory = *std::move(memory);
  *context = object->handle;
  contexts.Add(*context, std::move(object));
  return cuda::CUDA_SUCCESS;
}

void State::ClearContext(ContextObject* context) {
  functions.RemoveIf([&](const FunctionObject& f) { return f.module->context == context; });
  modules.RemoveIf([&](const ModuleObject& m) { return m.context == context; });
  streams.RemoveIf([&](const StreamObject& s) { return s.context == context; });
  events.RemoveIf([&](const EventObject& e) { return e.context == context; });
  context->libraries.clear();
  context->host_blocks.clear();
  context->limits.clear();
  context->cache_config = cuda::CU_FUNC_CACHE_PREFER_NONE;
  context->sticky = cuda::CUDA_SUCCESS;
  context->memory.reset();
}

CUresult State::ResetContext(ContextObject* context) {
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = MakeMemory(settings);
  if (!memory.ok()) return Fail(memory.status());
  ClearContext(context);
  context->memory = *std::move(memory);
  return cuda::CUDA_SUCCESS;
}

void State::DestroyContext(cuda::CUcontext context) {
  ContextObject* const object = contexts.Find(context);
  if (object == nullptr) return;
  ClearContext(object);
  contexts.Remove(context);
}

void State::DestroyModule(cuda::CUmodule module) {
  const std::unique_ptr<ModuleObject> object = modules.Remove(module);
  if (object == nullptr) return;
  for (const auto& [name, function] : object->functions) functions.Remove(function);
}

}  // namespace assay::emulator
