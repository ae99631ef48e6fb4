#include "worker/measure/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace assay {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;

// Empty when it cannot be read.
std::string ReadText(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kFileBytesMax);
  if (!text.ok()) return "";
  absl::StripAsciiWhitespace(&*text);
  return *std::move(text);
}

// The part of cpuinfo that describes the first processor.
void ReadCpuInfo(const std::string& text, MachineFacts* facts) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    const std::string value(absl::StripAsciiWhitespace(parts.second));
    if (key.empty()) break;
    if (key == "vendor_id") facts->vendor = value;
    if (key == "model name") facts->model_name = value;
    if (key == "microcode") facts->microcode = value;
    if (key == "cpu family" && !absl::SimpleAtoi(value, &facts->family)) facts->family = 0;
    if (key == "model" && !absl::SimpleAtoi(value, &facts->model)) facts->model = 0;
    if (key == "flags") facts->flags = absl::StrSplit(value, ' ', absl::SkipEmpty());
  }
}

void ReadCaveats(const std::string& cpus, MachineFacts* facts) {
  std::vector<std::string>& caveats = facts->caveats;
  const std::string no_turbo = ReadText(cpus + "/intel_pstate/no_turbo");
  const std::string boost = ReadText(cpus + "/cpufreq/boost");
  if (no_turbo.empty() && boost.empty()) {
    caveats.push_back("TURBO_UNKNOWN");
  } else if (no_turbo == "0" || boost == "1") {
    caveats.push_back("TURBO_ON");
  }
  const std::string governor = ReadText(cpus + "/cpu0/cpufreq/scaling_governor");
  if (governor.empty()) {
    caveats.push_back("GOVERNOR_UNKNOWN");
  } else if (governor != "performance") {
    caveats.push_back("GOVERNOR_NOT_PERFORMANCE");
  }
  if (ReadText(cpus + "/isolated").empty()) caveats.push_back("NOT_ISOLATED");
  const std::string smt = ReadText(cpus + "/smt/active");
  if (smt.empty()) caveats.push_back("SMT_UNKNOWN");
  if (smt == "1") caveats.push_back("SMT_ON");
  if (facts->flags.count("hypervisor") > 0) caveats.push_back("VIRTUALIZED");
  if (facts->cores.size() < 2) caveats.push_back("ONE_CORE");
  std::sort(caveats.begin(), caveats.end());
}

std::vector<int> AllowedCores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string VendorWord(const std::string& vendor) {
  if (vendor == "AuthenticAMD") return "amd";
  if (vendor == "GenuineIntel") return "intel";
  std::string word;
  for (const char c : vendor) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) word += absl::ascii_tolower(c);
  }
  return word.empty() ? "unknown" : word;
}

}  // namespace

MachineFacts ReadMachineFacts(const std::string& root) {
  MachineFacts facts;
  ReadCpuInfo(ReadText(root + "/proc/cpuinfo"), &facts);
  utsname system{};
  if (uname(&system) == 0) {
    facts.kernel = absl::StrCat(system.sysname, " ", system.release, " ", system.machine);
  }
  facts.cores = AllowedCores();
  const std::string cpus = root + "/sys/devices/system/cpu";
  facts.caches = ReadCpuCaches(root);
  ReadCaveats(cpus, &facts);
  return facts;
}

std::string IsaLevel(const MachineFacts& facts) {
  const auto has = [&facts](const char* flag) { return facts.flags.count(flag) > 0; };
  if (!has("avx2") || !has("fma")) return "base";
  const bool avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  return avx512 ? "avx512" : "avx2";
}

std::string DeviceClassName(const MachineFacts& facts) {
  return absl::StrCat("cpu-", VendorWord(facts.vendor), "-f", facts.family, "m", facts.model, "-",
                      IsaLevel(facts));
}

std::string InstructionSet(const MachineFacts& facts) {
  static constexpr const char* kTold[] = {
      "sse4_2",   "avx",      "avx2",     "fma",         "f16c",        "bmi2",     "avx512f",
      "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile",
      "amx_int8", "amx_bf16", "gfni",     "vaes",        "avx512_fp16"};
  std::string out = "x86_64";
  for (const char* flag : kTold) {
    if (facts.flags.count(flag) > 0) absl::StrAppend(&out, " ", flag);
  }
  return out;
}

CorePlacement PlaceCores(const MachineFacts& facts) {
  CorePlacement placement;
  if (facts.cores.size() < 2) return placement;
  // The last core is the guest's: interrupts and daemons gather on the first.
  placement.guest_core = facts.cores.back();
  placement.runner_core = facts.cores[facts.cores.size() - 2];
  return placement;
}

}  // namespace assay
