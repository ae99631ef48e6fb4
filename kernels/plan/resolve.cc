#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/candidate.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/plan/plan.h"
#include "kernels/text.h"

namespace assay {
namespace {

constexpr char kInvalid[] = "PLAN_INVALID";
constexpr char kOverLimit[] = "PLAN_OVER_LIMIT";
constexpr char kArgumentMismatch[] = "PLAN_ARGUMENT_MISMATCH";
constexpr char kKernelNotFound[] = "KERNEL_NOT_FOUND";
constexpr int64_t kAlignment = 256;  // every workspace starts at a multiple
constexpr int kPointerBytes = 8;
constexpr size_t kNamesShown = 8;

absl::Status Error(const char* reason, std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, reason, message);
}

std::string Axis(std::string_view field, size_t dimension) {
  return absl::StrCat(Av(field), ".", std::string(1, "xyz"[dimension]));
}

// "launches[1].grid.x: "ceil_div(n, 4)" is 70000".
std::string Value(std::string_view place, std::string_view expression, int64_t value) {
  return absl::StrCat(Av(place), ": ", Quoted(expression), " is ", value);
}

// The integer type that a parameter declares; `bytes` is 0 where it is no integer.
struct IntegerType {
  int bytes = 0;
  bool is_signed = false;
};

IntegerType ParseIntegerType(const KernelParameter& parameter) {
  const std::string_view type = parameter.type;
  if (type.size() < 2 || (type[0] != 'u' && type[0] != 's' && type[0] != 'b')) return {};
  for (const auto& [name, bytes] :
       {std::pair<std::string_view, int>{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}}) {
    if (type.substr(1) == name && parameter.bytes == bytes) return {bytes, type[0] == 's'};
  }
  return {};
}

class PlanResolver {
 public:
  PlanResolver(const v1::LaunchPlan& plan, const ResolvedWorkload& workload,
               const PlanLimits& limits, const std::vector<KernelSignature>& kernels)
      : plan_(plan), workload_(workload), limits_(limits), kernels_(kernels) {}

  absl::StatusOr<ResolvedPlan> Run(const ValueMap& configuration);

 private:
  absl::StatusOr<int64_t> Evaluate(std::string_view place, const std::string& expression) const;
  absl::Status ResolveWorkspaces();
  absl::StatusOr<const KernelSignature*> FindKernel(std::string_view place,
                                                    const std::string& name) const;
  template <typename Expressions>
  absl::Status ResolveExtent(std::string_view place, const Expressions& expressions,
                             const std::array<int64_t, 3>& max, std::array<uint32_t, 3>* out) const;
  absl::Status CheckBlock(std::string_view place, const KernelSignature& kernel,
                          const std::array<uint32_t, 3>& block) const;
  absl::StatusOr<int64_t> ResolveShared(std::string_view place, const KernelSignature& kernel,
                                        const std::string& expression) const;
  absl::StatusOr<PlanArgument> ResolveArgument(std::string_view place,
                                               const KernelParameter& parameter,
                                               const std::string& argument) const;
  absl::Status ResolveLaunch(const v1::Launch& launch, std::string_view place);
  // A tensor or workspace of that name as an argument; false when there is none.
  bool FindBuffer(std::string_view name, PlanArgument* argument) const;

  const v1::LaunchPlan& plan_;
  const ResolvedWorkload& workload_;
  const PlanLimits& limits_;
  const std::vector<KernelSignature>& kernels_;
  ValueMap values_;
  ResolvedPlan resolved_;
};

absl::StatusOr<int64_t> PlanResolver::Evaluate(std::string_view place,
                                               const std::string& expression) const {
  const auto parsed = Expression::Parse(expression);
  if (!parsed.ok()) {
    return Error(kInvalid, absl::StrCat(Av(place), ": ", Quoted(expression), ": ",
                                        parsed.status().message()));
  }
  for (const std::string& name : parsed->names()) {
    PlanArgument buffer;
    if (values_.count(name) != 0) continue;
    return Error(
        kInvalid,
        absl::StrCat(Av(place), ": ", Quoted(expression), " uses ", Quoted(name),
                     FindBuffer(name, &buffer)
                         ? ", which is a buffer and has no value; pass it by its name alone"
                         : ", which is no axis or parameter"));
  }
  const absl::StatusOr<int64_t> value = parsed->Evaluate(values_);
  // The message repeats the expression.
  if (!value.ok()) return Error(kInvalid, absl::StrCat(Av(place), ": ", value.status().message()));
  return value;
}

absl::Status PlanResolver::ResolveWorkspaces() {
  int64_t total = 0;
  for (const v1::Workspace& workspace : plan_.workspaces()) {
    const std::string place = absl::StrCat("workspace '", workspace.name(), "'.bytes");
    ASSAY_ASSIGN_OR_RETURN(const int64_t bytes, Evaluate(place, workspace.bytes()));
    if (bytes < 0) {
      return Error(kInvalid,
                   absl::StrCat(Value(place, workspace.bytes(), bytes), "; it must be 0 or more"));
    }
    const int64_t left = limits_.workspace_bytes_max - total;
    if (bytes > left) {
      return Error(kOverLimit, absl::StrCat(Value(place, workspace.bytes(), bytes),
                                            "; all workspaces together have at most ",
                                            limits_.workspace_bytes_max, " bytes, of which ", left,
                                            " are left"));
    }
    total = std::min(limits_.workspace_bytes_max,
                     total + (bytes + kAlignment - 1) / kAlignment * kAlignment);
    resolved_.workspaces.push_back({workspace.name(), bytes});
  }
  return absl::OkStatus();
}

absl::StatusOr<const KernelSignature*> PlanResolver::FindKernel(std::string_view place,
                                                                const std::string& name) const {
  std::vector<std::string> known;
  for (const KernelSignature& kernel : kernels_) {
    if (kernel.name == name) return &kernel;
    if (known.size() < kNamesShown) known.push_back(Quoted(kernel.name));
  }
  return Error(
      kKernelNotFound,
      absl::StrCat(Av(place), ".kernel: the candidate has no entry point ", Quoted(name), "; ",
                   known.empty() ? "it has none at all: declare the kernel extern \"C\" __global__"
                                 : absl::StrCat("it has ", absl::StrJoin(known, ", "),
                                                " (declare kernels extern \"C\" __global__)")));
}

template <typename Expressions>
absl::Status PlanResolver::ResolveExtent(std::string_view place, const Expressions& expressions,
                                         const std::array<int64_t, 3>& max,
                                         std::array<uint32_t, 3>* out) const {
  if (expressions.empty() || expressions.size() > 3) {
    return Error(kInvalid,
                 absl::StrCat(Av(place), ": ", expressions.size(), " extents; give one to three"));
  }
  for (int i = 0; i < expressions.size(); ++i) {
    const auto dimension = static_cast<size_t>(i);
    const std::string field = Axis(place, dimension);
    const std::string& expression = expressions[i];
    ASSAY_ASSIGN_OR_RETURN(const int64_t value, Evaluate(field, expression));
    if (value < 1) {
      return Error(kInvalid,
                   absl::StrCat(Value(field, expression, value), "; it must be 1 or more"));
    }
    if (value > max[dimension]) {
      return Error(kOverLimit, absl::StrCat(Value(field, expression, value),
                                            "; the device takes at most ", max[dimension]));
    }
    (*out)[dimension] = static_cast<uint32_t>(value);
  }
  return absl::OkStatus();
}

absl::Status PlanResolver::CheckBlock(std::string_view place, const KernelSignature& kernel,
                                      const std::array<uint32_t, 3>& block) const {
  const int64_t threads = int64_t{block[0]} * block[1] * block[2];
  const std::string text = absl::StrCat(block[0], " x ", block[1], " x ", block[2]);
  if (threads > limits_.block_threads_max) {
    return Error(kOverLimit,
                 absl::StrCat(Av(place), ".block: ", text, " is ", threads,
                              " threads; the device takes at most ", limits_.block_threads_max));
  }
  if (kernel.block_threads_max > 0 && threads > kernel.block_threads_max) {
    return Error(kOverLimit,
                 absl::StrCat(Av(place), ".block: ", text, " is ", threads, " threads; ",
                              Quoted(kernel.name), " is compiled for at most ",
                              kernel.block_threads_max, " (see its __launch_bounds__)"));
  }
  for (size_t i = 0; i < 3; ++i) {
    if (kernel.required_block[0] == 0) break;
    const int64_t required = std::max<int64_t>(kernel.required_block[i], 1);
    if (required == block[i]) continue;
    return Error(kOverLimit,
                 absl::StrCat(Axis(absl::StrCat(Av(place), ".block"), i), ": is ", block[i], "; ",
                              Quoted(kernel.name), " requires ", required));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PlanResolver::ResolveShared(std::string_view place,
                                                    const KernelSignature& kernel,
                                                    const std::string& expression) const {
  int64_t bytes = 0;
  const std::string field = absl::StrCat(Av(place), ".shared_bytes");
  if (!expression.empty()) {
    ASSAY_ASSIGN_OR_RETURN(bytes, Evaluate(field, expression));
  }
  const std::string shown = Value(field, expression.empty() ? "0" : expression, bytes);
  if (bytes < 0) return Error(kInvalid, absl::StrCat(shown, "; it must be 0 or more"));
  const int64_t room = limits_.shared_bytes_max - kernel.static_shared_bytes;
  if (bytes <= room) return bytes;
  return Error(kOverLimit,
               absl::StrCat(shown, " beside ", kernel.static_shared_bytes, " static bytes of ",
                            Quoted(kernel.name), "; the device has ", limits_.shared_bytes_max,
                            " for a block"));
}

bool PlanResolver::FindBuffer(std::string_view name, PlanArgument* argument) const {
  for (size_t i = 0; i < workload_.tensors.size(); ++i) {
    if (workload_.tensors[i].name != name) continue;
    *argument = {PlanArgument::Kind::kTensor, static_cast<int>(i), 0, kPointerBytes};
    return true;
  }
  for (int i = 0; i < plan_.workspaces_size(); ++i) {
    if (plan_.workspaces(i).name() != name) continue;
    *argument = {PlanArgument::Kind::kWorkspace, i, 0, kPointerBytes};
    return true;
  }
  return false;
}

absl::StatusOr<PlanArgument> PlanResolver::ResolveArgument(std::string_view place,
                                                           const KernelParameter& parameter,
                                                           const std::string& text) const {
  const IntegerType type = ParseIntegerType(parameter);
  const std::string declared =
      absl::StrCat("parameter ", Quoted(parameter.name), " is ",
                   parameter.is_pointer ? "a pointer" : absl::StrCat(".", parameter.type));
  PlanArgument argument;
  if (FindBuffer(text, &argument)) {
    if (type.bytes == kPointerBytes) return argument;
    return Error(kArgumentMismatch,
                 absl::StrCat(Av(place), ": ", Quoted(text), " is a buffer, but ", declared, " of ",
                              parameter.bytes, " bytes; a buffer needs a pointer of 8"));
  }
  if (type.bytes == 0) {
    return Error(
        kArgumentMismatch,
        absl::StrCat(Av(place), ": ", Quoted(text), " for ", declared, " of ", parameter.bytes,
                     " bytes; a plan passes buffers and integers only, so make it a "
                     "constant of the source or a parameter of the candidate"));
  }
  if (parameter.is_pointer) {
    return Error(kArgumentMismatch, absl::StrCat(Av(place), ": ", Quoted(text),
                                                 " is no tensor or workspace, but ", declared));
  }
  ASSAY_ASSIGN_OR_RETURN(const int64_t value, Evaluate(place, text));
  argument.bytes = type.bytes;
  argument.bits = static_cast<uint64_t>(value);
  if (type.bytes == kPointerBytes) return argument;
  // Compilers write signed parameters as unsigned ones, so both ranges are taken unless it says s.
  const int bits = type.bytes * 8;
  const int64_t low = -(int64_t{1} << (bits - 1));
  const int64_t high = type.is_signed ? -(low + 1) : (int64_t{1} << bits) - 1;
  if (value < low || value > high) {
    return Error(kArgumentMismatch,
                 absl::StrCat(Value(place, text, value), ", but ", declared, " and holds ", low,
                              " to ", high, "; declare it wider in the kernel"));
  }
  argument.bits &= (uint64_t{1} << bits) - 1;
  return argument;
}

absl::Status PlanResolver::ResolveLaunch(const v1::Launch& launch, std::string_view place) {
  ASSAY_ASSIGN_OR_RETURN(const KernelSignature* kernel, FindKernel(place, launch.kernel()));
  ResolvedLaunch out;
  out.kernel = launch.kernel();
  ASSAY_RETURN_IF_ERROR(
      ResolveExtent(absl::StrCat(Av(place), ".grid"), launch.grid(), limits_.grid_max, &out.grid));
  ASSAY_RETURN_IF_ERROR(ResolveExtent(absl::StrCat(Av(place), ".block"), launch.block(),
                                      limits_.block_max, &out.block));
  ASSAY_RETURN_IF_ERROR(CheckBlock(place, *kernel, out.block));
  ASSAY_ASSIGN_OR_RETURN(out.shared_bytes, ResolveShared(place, *kernel, launch.shared_bytes()));
  const auto given = static_cast<size_t>(launch.args_size());
  if (given != kernel->parameters.size()) {
    std::vector<std::string> names;
    for (const KernelParameter& parameter : kernel->parameters) {
      if (names.size() < kNamesShown) {
        names.push_back(absl::StrCat(".", parameter.type, " ", parameter.name));
      }
    }
    return Error(
        kArgumentMismatch,
        absl::StrCat(Av(place), ".args: ", given, " arguments, but ", Quoted(launch.kernel()),
                     " has ", kernel->parameters.size(), " parameters", names.empty() ? "" : ": ",
                     absl::StrJoin(names, ", ")));
  }
  for (size_t i = 0; i < given; ++i) {
    ASSAY_ASSIGN_OR_RETURN(
        PlanArgument argument,
        ResolveArgument(absl::StrCat(Av(place), ".args[", i, "]"), kernel->parameters[i],
                        launch.args(static_cast<int>(i))));
    out.arguments.push_back(argument);
  }
  resolved_.launches.push_back(std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<ResolvedPlan> PlanResolver::Run(const ValueMap& configuration) {
  values_ = workload_.axes;
  for (const auto& [name, value] : configuration) {
    if (!values_.emplace(name, value).second) {
      return Error(kInvalid, absl::StrCat("parameter ", Quoted(name), " has the name of an axis"));
    }
  }
  const auto launches = static_cast<size_t>(plan_.launches_size());
  const auto workspaces = static_cast<size_t>(plan_.workspaces_size());
  if (launches == 0 || launches > limits::kLaunchesMax) {
    return Error(kInvalid,
                 absl::StrCat("launches: ", launches, "; a plan has 1 to ", limits::kLaunchesMax));
  }
  if (workspaces > limits::kWorkspacesMax) {
    return Error(kInvalid, absl::StrCat("workspaces: ", workspaces, "; a plan has at most ",
                                        limits::kWorkspacesMax));
  }
  ASSAY_RETURN_IF_ERROR(ResolveWorkspaces());
  for (int i = 0; i < plan_.launches_size(); ++i) {
    ASSAY_RETURN_IF_ERROR(ResolveLaunch(plan_.launches(i), absl::StrCat("launches[", i, "]")));
  }
  return std::move(resolved_);
}

}  // namespace

absl::StatusOr<ResolvedPlan> ResolvePlan(const v1::CandidateSpec& spec,
                                         const ResolvedWorkload& workload,
                                         const ValueMap& configuration, const PlanLimits& limits,
                                         const std::vector<KernelSignature>& kernels) {
  return PlanResolver(spec.plan(), workload, limits, kernels).Run(configuration);
}

}  // namespace assay
