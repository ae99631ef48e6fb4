#include "tests/gpu/gpu_check.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/v1/fleet.pb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "google/protobuf/util/json_util.h"
#include "tests/gpu/catalogue.h"
#include "tests/gpu/gpu_report.h"
#include "worker/backend/cuda/device_slug.h"
#include "worker/backend/cuda/emulated_arch.h"
#include "worker/backend/cuda/nvml.h"
#include "worker/ceiling/cuda/calibrate_gpu.h"

namespace assay {
namespace {

// Of the tensors of a workload whose time is taken: filling larger ones takes the host too long.
constexpr int64_t kTimedBytesMax = int64_t{256} << 20;

std::string HealthText(const std::optional<DeviceHealth>& health) {
  if (!health.has_value()) return "not told";
  return absl::StrFormat("SM %d MHz, memory %d MHz, %d C, %.0f W, throttle reasons: %s",
                         health->sm_clock_mhz, health->memory_clock_mhz, health->temperature_c,
                         health->power_w, ThrottleText(health->throttle_bits));
}

class GpuCheck {
 public:
  explicit GpuCheck(const GpuCheckOptions& options) : options_(options), clock_(SystemClock()) {}

  absl::StatusOr<int> Run() {
    ASSAY_RETURN_IF_ERROR(CreateDirectories(options_.ptx_directory));
    if (options_.compile_arch != 0) return CompileAll();
    absl::StatusOr<std::unique_ptr<CudaDriver>> driver = CudaDriver::Load(options_.driver);
    if (!driver.ok()) {
      if (GetReason(driver.status()) != "DRIVER_MISSING") return driver.status();
      std::printf("gpu_check: no CUDA driver here; nothing was run\n");
      return 0;
    }
    driver_ = *std::move(driver);
    if (const cuda::CUresult started = driver_->functions().cuInit(0);
        started == cuda::CUDA_ERROR_NO_DEVICE) {
      std::printf("gpu_check: no CUDA device here; nothing was run\n");
      return 0;
    }
    ASSAY_ASSIGN_OR_RETURN(emulator_, CudaDriver::Load(options_.emulator));
    ASSAY_RETURN_IF_ERROR(MeasureCeilings());
    OpenCatalogue(EmulatedArchFor(facts_.arch));
    // A device that hangs later takes nothing of this with it.
    ASSAY_RETURN_IF_ERROR(Write(RenderReport(report_)));
    ASSAY_RETURN_IF_ERROR(CheckAll());
    TimeAll();
    report_.machine.push_back({"state at the end", HealthText(Health())});
    const std::string text = RenderReport(report_);
    std::fputs(text.c_str(), stdout);
    ASSAY_RETURN_IF_ERROR(Write(text));
    if (!Folder().empty()) std::printf("gpu_check: results are in %s\n", Folder().c_str());
    return FailureCount(report_) == 0 ? 0 : 1;
  }

 private:
  absl::StatusOr<int> CompileAll();
  absl::Status MeasureCeilings();
  void DescribeMachine();
  void OpenCatalogue(int arch);
  std::optional<DeviceHealth> Health() { return nvml_ == nullptr ? std::nullopt : nvml_->Sample(); }
  GpuTarget DeviceTarget() const;
  absl::Status CheckAll();
  void TimeAll();
  std::string Folder() const;  // of the results; empty: none
  absl::Status Write(const std::string& text);

  const GpuCheckOptions& options_;
  Clock* const clock_;
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaDriver> emulator_;
  std::unique_ptr<Nvml> nvml_;
  BenchDeviceFacts facts_;
  v1::Calibration calibration_;
  std::unique_ptr<Catalogue> catalogue_;
  std::vector<std::string> paths_;
  std::vector<GpuCandidate> candidates_;  // those that could be loaded
  GpuReport report_;
};

void GpuCheck::OpenCatalogue(int arch) {
  CatalogueOptions options;
  options.problems = options_.problems;
  options.ptx_directory = options_.ptx_directory;
  options.helper = options_.helper;
  options.arch = arch;
  catalogue_ = std::make_unique<Catalogue>(options);
  paths_ = options_.candidates.empty() ? ShippedCandidates(options_.problems) : options_.candidates;
}

absl::StatusOr<int> GpuCheck::CompileAll() {
  OpenCatalogue(options_.compile_arch);
  int failures = 0;
  for (const std::string& path : paths_) {
    const absl::StatusOr<GpuCandidate> loaded = catalogue_->Load(path);
    if (loaded.ok()) continue;
    ++failures;
    std::printf("%s: %s\n", path.c_str(), std::string(loaded.status().message()).c_str());
  }
  std::printf("gpu_check: %zu candidates compiled for sm_%d into %s, %d failed\n",
              paths_.size() - static_cast<size_t>(failures), options_.compile_arch,
              options_.ptx_directory.c_str(), failures);
  return failures == 0 ? 0 : 1;
}

// In a context that is gone before candidates run.
absl::Status GpuCheck::MeasureCeilings() {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<BenchDevice> device,
                         BenchDevice::Open(driver_.get(), 0));
  facts_ = device->facts();
  if (!driver_->is_emulated()) {
    Nvml::Options options;
    options.uuid = facts_.uuid;
    options.pci_bus_id = facts_.pci_bus_id;
    absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Open(options);
    if (nvml.ok()) {
      nvml_ = *std::move(nvml);
    } else {
      report_.left_out.push_back(absl::StrCat("clocks and health: ", nvml.status().message()));
    }
  }
  DescribeMachine();
  if (driver_->is_emulated()) {
    report_.left_out.push_back("ceilings and times: an emulated device has none");
    return absl::OkStatus();
  }
  GpuCalibrateOptions calibrate;
  calibrate.facts = facts_;
  calibrate.timer = device.get();
  calibrate.health = [this] { return Health(); };
  calibrate.time_max = options_.ceiling_time;
  const absl::Status measured = CalibrateGpu(calibrate, &calibration_);
  if (!measured.ok()) {
    report_.left_out.push_back(absl::StrCat("ceilings: ", measured.message()));
    return absl::OkStatus();
  }
  report_.calibration = &calibration_;
  for (const std::string& text : calibration_.left_out()) report_.left_out.push_back(text);
  return absl::OkStatus();
}

void GpuCheck::DescribeMachine() {
  const auto add = [this](const char* name, std::string value) {
    report_.machine.push_back({name, std::move(value)});
  };
  add("device", absl::StrCat(facts_.name, ", sm_", facts_.arch));
  add("date", absl::FormatTime("%Y-%m-%d %H:%M UTC", clock_->Now(), absl::UTCTimeZone()));
  add("CUDA driver",
      absl::StrCat(facts_.driver_version / 1000, ".", facts_.driver_version % 1000 / 10));
  add("multiprocessors, L2, memory",
      absl::StrCat(facts_.multiprocessors, ", ", facts_.l2_bytes >> 20, " MiB, ",
                   facts_.memory_bytes >> 20, " MiB"));
  add("emulated as", absl::StrCat("sm_", EmulatedArchFor(facts_.arch)));
  if (nvml_ == nullptr) return;
  const NvmlFacts facts = nvml_->Facts();
  const auto yes_or_no = [](const std::optional<bool>& value) {
    return !value.has_value() ? "not told" : *value ? "on" : "off";
  };
  add("driver version", facts.driver_version);
  add("persistence mode, MIG",
      absl::StrCat(yes_or_no(facts.persistence_mode), ", ", yes_or_no(facts.mig_mode)));
  if (facts.uncorrected_ecc_errors.has_value()) {
    add("uncorrected ECC errors", absl::StrCat(*facts.uncorrected_ecc_errors));
  }
  if (facts.power_limit_w.has_value()) add("power limit", absl::StrCat(*facts.power_limit_w, " W"));
  if (facts.sm_clock_max_mhz.has_value()) {
    add("highest SM clock", absl::StrCat(*facts.sm_clock_max_mhz, " MHz"));
  }
  if (const auto others = nvml_->OtherProcesses()) {
    add("other compute processes, as NVML counts", absl::StrCat(others->size()));
  }
  add("state at the start", HealthText(Health()));
}

GpuTarget GpuCheck::DeviceTarget() const {
  GpuTarget target;
  target.driver = driver_.get();
  target.guard_zones = true;
  // Of an emulated device in the place of a real one: other orders than the one it is held against.
  target.arch = EmulatedArchFor(facts_.arch);
  target.seed = options_.seed;
  return target;
}

absl::Status GpuCheck::CheckAll() {
  CrossCheckOptions check;
  check.device = DeviceTarget();
  check.emulated.driver = emulator_.get();
  check.emulated.arch = check.device.arch;
  check.emulated.host_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  check.input_seed = options_.seed;
  const absl::Duration deadline = clock_->Monotonic() + options_.check_time;
  for (size_t i = 0; i < paths_.size(); ++i) {
    const absl::Duration left = deadline - clock_->Monotonic();
    if (left <= absl::ZeroDuration()) {
      report_.left_out.push_back(
          absl::StrCat(paths_[i], ": no time left of ", absl::FormatDuration(options_.check_time)));
      continue;
    }
    absl::StatusOr<GpuCandidate> candidate = catalogue_->Load(paths_[i]);
    if (absl::IsUnavailable(candidate.status())) {  // no compiler here
      report_.left_out.push_back(absl::StrCat(paths_[i], ": ", candidate.status().message()));
      continue;
    }
    if (!candidate.ok()) {
      CrossRow failed;
      failed.candidate = paths_[i];
      failed.message = std::string(candidate.status().message());
      report_.rows.push_back(std::move(failed));
      continue;
    }
    // What earlier ones did not use goes to those that follow.
    check.time_max = left / static_cast<int64_t>(paths_.size() - i);
    std::vector<std::string> left_out;
    std::vector<CrossRow> rows = CrossCheck(*candidate, check, &left_out);
    std::move(rows.begin(), rows.end(), std::back_inserter(report_.rows));
    for (const std::string& name : left_out) {
      report_.left_out.push_back(absl::StrCat(name, ": no time left for the emulated device"));
    }
    candidates_.push_back(*std::move(candidate));
    ASSAY_RETURN_IF_ERROR(Write(RenderReport(report_)));
  }
  return absl::OkStatus();
}

void GpuCheck::TimeAll() {
  if (driver_->is_emulated()) return;
  const absl::Duration deadline = clock_->Monotonic() + options_.run_time;
  InputMemo memo;
  for (const GpuCandidate& candidate : candidates_) {
    const std::string name = absl::StrCat(candidate.problem_id, "/", candidate.label, ", its time");
    if (clock_->Monotonic() >= deadline) {
      report_.left_out.push_back(
          absl::StrCat(name, ": no time left of ", absl::FormatDuration(options_.run_time)));
      continue;
    }
    const absl::StatusOr<TimeRow> row = TimeCandidate(candidate, DeviceTarget(), calibration_,
                                                      kTimedBytesMax, options_.seed, &memo);
    if (row.ok()) {
      report_.times.push_back(*row);
    } else {
      report_.left_out.push_back(absl::StrCat(name, ": ", row.status().message()));
    }
  }
}

std::string GpuCheck::Folder() const {
  if (!options_.out_directory.empty() || options_.results_directory.empty()) {
    return options_.out_directory;
  }
  return absl::StrCat(options_.results_directory, "/", DeviceSlug(facts_.name));
}

absl::Status GpuCheck::Write(const std::string& text) {
  const std::string folder = Folder();
  if (folder.empty()) return absl::OkStatus();
  ASSAY_RETURN_IF_ERROR(CreateDirectories(folder));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder + "/gpu_check.md", text));
  if (report_.calibration != nullptr) {
    google::protobuf::util::JsonPrintOptions print;
    print.add_whitespace = true;
    std::string json;
    const auto printed = google::protobuf::util::MessageToJsonString(calibration_, &json, print);
    if (!printed.ok()) return absl::InternalError("the calibration cannot be printed");
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder + "/calibration.json", json));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunGpuCheck(const GpuCheckOptions& options) { return GpuCheck(options).Run(); }

}  // namespace assay
