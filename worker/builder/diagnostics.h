// Reads what g++, as and ld wrote. Pure functions; the text is hostile.
#ifndef ASSAY_WORKER_BUILDER_DIAGNOSTICS_H_
#define ASSAY_WORKER_BUILDER_DIAGNOSTICS_H_

#include <string>
#include <string_view>
#include <vector>

#include "worker/builder/builder.h"

namespace assay {

// Values of assay.v1.Diagnostic.Severity.
inline constexpr int kSeverityError = 1;
inline constexpr int kSeverityWarning = 2;
inline constexpr int kSeverityNote = 3;

// Of g++, as and ld: at most limits::kDiagnosticsMax, in order; errors are kept before warnings
// when there are more.
std::vector<BuildDiagnostic> ParseDiagnostics(std::string_view log);

// A diagnostic with file and message cut to what is kept.
BuildDiagnostic MakeDiagnostic(int severity, std::string_view file, int line, int column,
                               std::string_view message);
// Cuts to limits::kDiagnosticsMax, warnings first.
void CapDiagnostics(std::vector<BuildDiagnostic>* diagnostics);
// "file:line:column: message", without what is not known.
std::string Placed(const BuildDiagnostic& diagnostic);
// Whether `path`, taken in by `file`, lies outside the folder of the sources.
bool LeavesSources(std::string_view file, std::string_view path);

struct CompileFailure {
  std::string reason;
  std::string message;  // empty where the first errors say it best
};

// COMPILE_FAILED, or what it is more exactly: WRONG_PROTOTYPE when a declaration conflicts with one
// in `prelude`, ENTRY_NOT_FOUND when a function that `prelude` declares is not defined,
// RESERVED_NAME when the sources define assay_invoke, INCLUDE_FORBIDDEN when they take in a file
// from outside their own folder that the sandbox does not have, COMPILER_LIMIT when the compiler
// gives up by a limit of the language (template depth, constexpr steps, nested includes).
CompileFailure ClassifyFailure(const std::vector<BuildDiagnostic>& diagnostics,
                               std::string_view prelude);

// Whether an error points at the sources.
bool ExplainedBySources(const std::vector<BuildDiagnostic>& diagnostics);

// The signal that ended a program which the compiler's driver had started: SIGKILL, SIGXCPU or
// SIGXFSZ, else 0. Only the driver's own last words count, after which no text of a candidate
// comes.
int SignalOfTool(std::string_view log);

// Whether the text speaks of the machine: a full disk, no memory, no processes. The candidate can
// write such text too, so it only raises the question.
bool MentionsMachine(std::string_view log);
// Of those, memory.
bool MentionsMemory(std::string_view log);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_DIAGNOSTICS_H_
