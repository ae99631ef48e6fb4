#include "worker/builder/forbidden_device_code.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "worker/backend/cuda/ptx_statements.h"
#include "worker/builder/diagnostics.h"

namespace assay {
namespace {

// What every driver defines for device code.
constexpr std::string_view kSystemFunctions[] = {"vprintf", "malloc", "free", "__assertfail"};

// Of the device runtime: a kernel or a graph that is launched from a kernel, and what that needs.
constexpr std::string_view kLaunchPrefixes[] = {"cudaLaunch",
                                                "cudaGraphLaunch",
                                                "cudaGetParameterBuffer",
                                                "cudaCGGetParameterBuffer",
                                                "cudaStream",
                                                "cudaDeviceSynchronize",
                                                "cudaEvent",
                                                "cudaMemcpyAsync",
                                                "cudaMemsetAsync",
                                                "cudaGraphKernelNode",
                                                "__cudaCDP",
                                                "cnp"};

struct Use {
  std::string_view symbol;
  std::string_view function;
  int file = 0;
  int line = 0;
  int ptx_line = 0;
};

struct Symbols {
  std::set<std::string_view> declared;
  std::set<std::string_view> defined;
  std::vector<Use> uses;  // of what was declared and not yet defined, one a symbol
  std::set<std::string_view> used;
  std::optional<Use> dependent_launch;
};

bool IsLaunch(std::string_view symbol) {
  return std::any_of(std::begin(kLaunchPrefixes), std::end(kLaunchPrefixes),
                     [&](std::string_view prefix) { return symbol.starts_with(prefix); });
}

bool IsSystemFunction(std::string_view symbol) {
  return std::find(std::begin(kSystemFunctions), std::end(kSystemFunctions), symbol) !=
         std::end(kSystemFunctions);
}

Use UseAt(std::string_view symbol, const PtxStatement& statement) {
  return {symbol, statement.name, statement.file, statement.line, statement.ptx_line};
}

void Take(const PtxStatement& statement, Symbols* symbols) {
  if (statement.kind != PtxStatement::Kind::kInstruction) {
    (statement.is_declaration ? symbols->declared : symbols->defined).insert(statement.name);
    return;
  }
  if (statement.opcode.starts_with("griddepcontrol") && statement.Has("launch_dependents") &&
      !symbols->dependent_launch.has_value()) {
    symbols->dependent_launch = UseAt("griddepcontrol", statement);
  }
  for (const std::string_view word : statement.operands) {
    if (symbols->declared.count(word) == 0 || !symbols->used.insert(word).second) continue;
    symbols->uses.push_back(UseAt(word, statement));
  }
}

ForbiddenDeviceCode Refuse(std::string_view reason, const Use& use, std::string message,
                           const std::map<int, std::string_view>& files) {
  const auto file = files.find(use.file);
  absl::StrAppend(&message, " (", Av(use.function), ", PTX line ", use.ptx_line, ")");
  ForbiddenDeviceCode found;
  found.reason = std::string(reason);
  found.diagnostic =
      MakeDiagnostic(kSeverityError, file == files.end() ? std::string_view() : file->second,
                     use.line, 0, message);
  return found;
}

}  // namespace

std::optional<ForbiddenDeviceCode> FindForbiddenDeviceCode(std::string_view ptx) {
  PtxStatements statements(ptx);
  PtxStatement statement;
  Symbols symbols;
  while (statements.Next(&statement)) Take(statement, &symbols);
  for (const Use& use : symbols.uses) {
    if (symbols.defined.count(use.symbol) != 0 || IsSystemFunction(use.symbol)) continue;
    if (IsLaunch(use.symbol)) {
      return Refuse("DEVICE_LAUNCH_FORBIDDEN", use,
                    absl::StrCat("the kernel launches work itself by ", Av(use.symbol),
                                 "; put every launch into the plan"),
                    statements.files());
    }
    return Refuse("UNDEFINED_SYMBOL", use,
                  absl::StrCat(Av(use.symbol),
                               " is declared and nowhere defined; bring its source along, for "
                               "candidates are linked with nothing"),
                  statements.files());
  }
  if (!symbols.dependent_launch.has_value()) return std::nullopt;
  return Refuse("DEPENDENT_LAUNCH_FORBIDDEN", *symbols.dependent_launch,
                "griddepcontrol.launch_dependents lets the next launch begin before this one has "
                "ended; leave it out: the launches of a plan run one after the other",
                statements.files());
}

}  // namespace assay
