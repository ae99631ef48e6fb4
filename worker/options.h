// The command line of assay-worker.
#ifndef ASSAY_WORKER_OPTIONS_H_
#define ASSAY_WORKER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/channel.h"

namespace assay {

inline constexpr char kWorkerUsage[] =
    "usage: assay-worker --server HOST:PORT [--name NAME] [--state-dir DIR] [--device "
    "cpu|cuda[:N]|emulated:sm_80] [--tls-ca FILE] [--tls-cert FILE --tls-key FILE] [--token-file "
    "FILE] [--calibrate] [--calibration quick|full] [--require-wall NAME]... [--require-walls all] "
    "[--allow-unsandboxed]";

// What a worker judges on.
struct WorkerDevice {
  enum class Kind { kCpu, kEmulated, kCuda };
  Kind kind = Kind::kCpu;
  int arch = 0;     // of an emulated GPU: 75, 80, 89, 90, 100 or 120
  int ordinal = 0;  // of a CUDA device, as its driver counts
};

struct WorkerOptions {
  bool help = false;               // --help: nothing else counts
  std::string server;              // --server HOST:PORT; required
  ChannelFiles files;              // --tls-ca, --tls-cert, --tls-key, --token-file
  std::string name;                // --name; [a-z0-9-]; by default from the host's name
  std::string state_directory;     // --state-dir; by default below the temporary folder
  WorkerDevice device;             // --device: "cpu", "cuda", "cuda:1" or "emulated:sm_80"
  bool calibrate = false;          // --calibrate: measure the ceilings even when they are known
  bool quick_calibration = false;  // --calibration quick|full; quick ones of a GPU are none at all
  bool allow_unsandboxed = false;  // --allow-unsandboxed: for sanitizer builds and development
  // Walls that have to stand: DefaultRequiredWalls, each --require-wall NAME, all by
  // --require-walls all; none with --allow-unsandboxed.
  std::vector<std::string> required_walls;
};

// INVALID_ARGUMENT says what is wrong. Both "--name x" and "--name=x".
absl::StatusOr<WorkerOptions> ParseWorkerOptions(const std::vector<std::string>& arguments);

}  // namespace assay

#endif  // ASSAY_WORKER_OPTIONS_H_
