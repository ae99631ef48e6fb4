// The data files of the seeded-bug suite: a PTX kernel with one planted bug, its clean twin in the
// same text, and how to launch both.
//
// A file is PTX whose leading comment says:
//   // CASE what is wrong
//   // LAUNCH grid=2 block=64,2 shared=1024 budget=100000 output=1000 cooperative=1 launches=2
//   // TWIN grid=1                        what of LAUNCH differs for the twin
//   // BUFFER a f32 64 iota input         a parameter: an allocation of 64 values
//   // VALUE u32 64                       a parameter by value
//   // AT block=1 thread=3,1              where the fault is, when the kernel leaves no choice
//   // RESULT a 5 12                      element 5 of a after the twin has run
// Buffers begin as `iota` (0, 1, 2, ...), `zero` or `empty` (nobody has written them), and may be
// `input`, `freed` (before the launch), `repoison` (holds nothing again before a later launch) or
// `except=7` (nobody has written element 7).
//
// At the end of a line of the kernel, "// FAULT KIND" names what the bug is reported as, and where;
// "// OR KIND" what it may be reported as, or where, when threads run in another order than their
// own. A line whose comment begins with BUG is only in the faulty kernel, one that begins with
// "//FIX " only in the twin, so that both have the same lines.
#ifndef ASSAY_EMULATOR_SUITE_SUITE_CASE_H_
#define ASSAY_EMULATOR_SUITE_SUITE_CASE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/engine.h"

namespace assay::emulator {

struct SuiteBuffer {
  std::string name;
  Type type = Type::kB32;
  size_t count = 0;
  std::string fill;
  bool input = false;
  bool freed = false;
  bool repoison = false;
  std::optional<size_t> except;
};

// A parameter: a buffer, or a value of `type`.
struct SuiteParameter {
  std::optional<SuiteBuffer> buffer;
  Type type = Type::kB64;
  std::string value;
};

struct SuiteLaunch {
  LaunchOptions options;
  int launches = 1;
};

struct SuiteMarker {
  int line = 0;
  std::string kind;
  std::string opcode;
  bool in_order = false;  // FAULT; else OR
};

struct SuiteResult {
  std::string buffer;
  size_t index = 0;
  double value = 0;
};

struct SuiteCase {
  std::string name;
  std::string description;
  std::string faulty;  // PTX
  std::string twin;
  SuiteLaunch faulty_launch;
  SuiteLaunch twin_launch;
  std::vector<SuiteParameter> parameters;
  std::vector<SuiteMarker> markers;
  std::optional<Dim3> block;
  std::optional<Dim3> thread;
  std::vector<SuiteResult> results;
};

absl::StatusOr<SuiteCase> ParseSuiteCase(std::string_view name, std::string_view text);

// What launches of a case found, and what its buffers hold afterwards.
struct SuiteOutcome {
  std::vector<Fault> faults;
  std::string output;
  std::map<std::string, std::vector<double>> buffers;
};
absl::StatusOr<SuiteOutcome> RunSuiteCase(const SuiteCase& suite_case, bool twin, uint64_t seed,
                                          int threads);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_SUITE_SUITE_CASE_H_
