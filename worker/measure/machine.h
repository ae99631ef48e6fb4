// What this machine is, and what it cannot give a measurement. Read from /proc and /sys.
#ifndef ASSAY_WORKER_MEASURE_MACHINE_H_
#define ASSAY_WORKER_MEASURE_MACHINE_H_

#include <set>
#include <string>
#include <vector>

#include "base/cpu_caches.h"

namespace assay {

struct MachineFacts {
  std::string vendor;  // as in /proc/cpuinfo: "AuthenticAMD"
  int family = 0;
  int model = 0;
  std::string model_name;
  std::string microcode;
  std::set<std::string> flags;
  std::string kernel;      // "Linux 6.18.5 x86_64"
  std::vector<int> cores;  // that this process may run on
  CpuCaches caches;
  // "TURBO_ON", "TURBO_UNKNOWN", "GOVERNOR_UNKNOWN", "GOVERNOR_NOT_PERFORMANCE", "NOT_ISOLATED",
  // "SMT_ON", "SMT_UNKNOWN", "VIRTUALIZED", "ONE_CORE"; sorted.
  std::vector<std::string> caveats;
};

// `root` is put before /proc and /sys, for tests. What cannot be read stays empty and becomes a
// caveat.
MachineFacts ReadMachineFacts(const std::string& root);

// "avx512", "avx2" or "base".
std::string IsaLevel(const MachineFacts& facts);

// "cpu-amd-f23m1-avx2".
std::string DeviceClassName(const MachineFacts& facts);

// "x86_64 avx2 fma f16c": what a kernel may use and a run-time dispatch may ask for.
std::string InstructionSet(const MachineFacts& facts);

// Cores for runner and guest; -1 when there are not two.
struct CorePlacement {
  int runner_core = -1;
  int guest_core = -1;
};
CorePlacement PlaceCores(const MachineFacts& facts);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_MACHINE_H_
