// Identity of a candidate and choice of its configuration.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/candidate.pb.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"
#include "kernels/text.h"

namespace assay {
namespace {

absl::Status Invalid(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "CONFIGURATION_INVALID", message);
}

// A constraint and the parameter (by position) after which all its names are known.
struct PlacedConstraint {
  Expression expression;
  size_t known_after = 0;
};

// Depth-first search in the order of the values, cut as soon as a constraint fails.
class Search {
 public:
  Search(const v1::CandidateSpec& spec, std::vector<PlacedConstraint> constraints)
      : spec_(spec), constraints_(std::move(constraints)) {}

  absl::StatusOr<ValueMap> First() {
    const bool found = Descend(0);
    if (found) return values_;
    if (steps_ > limits::kConfigurationStepsMax) {
      return Invalid(absl::StrCat("no configuration was found in ", limits::kConfigurationStepsMax,
                                  " steps; give one, or order the values so that the first fit"));
    }
    return Invalid(absl::StrCat("no configuration satisfies the constraints ",
                                absl::StrJoin(spec_.constraints(), " && ").substr(0, 200),
                                "; correct them or add values"));
  }

 private:
  // Recursion at most kParametersMax deep.
  bool Descend(size_t depth) {
    if (depth == static_cast<size_t>(spec_.parameters_size())) return true;
    const v1::TuningParameter& parameter = spec_.parameters(static_cast<int>(depth));
    for (const int64_t value : parameter.values()) {
      if (++steps_ > limits::kConfigurationStepsMax) return false;
      values_[parameter.name()] = value;
      if (Holds(depth) && Descend(depth + 1)) return true;
    }
    values_.erase(parameter.name());
    return false;
  }

  bool Holds(size_t depth) const {
    return std::all_of(constraints_.begin(), constraints_.end(),
                       [&](const PlacedConstraint& constraint) {
                         if (constraint.known_after != depth) return true;
                         const auto value = constraint.expression.Evaluate(values_);
                         return value.ok() && *value != 0;
                       });
  }

  const v1::CandidateSpec& spec_;
  const std::vector<PlacedConstraint> constraints_;
  ValueMap values_;
  int64_t steps_ = 0;
};

absl::StatusOr<std::vector<PlacedConstraint>> Place(const v1::CandidateSpec& spec) {
  std::map<std::string, size_t> positions;
  for (int i = 0; i < spec.parameters_size(); ++i) {
    positions[spec.parameters(i).name()] = static_cast<size_t>(i);
  }
  std::vector<PlacedConstraint> out;
  for (const std::string& text : spec.constraints()) {
    auto expression = Expression::Parse(text);
    if (!expression.ok()) return Invalid(Sv(expression.status().message()));
    PlacedConstraint placed{std::move(expression).value(), 0};
    for (const std::string& name : placed.expression.names()) {
      const auto it = positions.find(name);
      if (it == positions.end()) {
        return Invalid(absl::StrCat("constraint ", Quoted(text), " uses ", Quoted(name),
                                    ", which is not a parameter"));
      }
      placed.known_after = std::max(placed.known_after, it->second);
    }
    out.push_back(std::move(placed));
  }
  return out;
}

absl::Status CheckRequested(const v1::CandidateSpec& spec, const ValueMap& requested) {
  for (const v1::TuningParameter& parameter : spec.parameters()) {
    const auto it = requested.find(parameter.name());
    if (it == requested.end()) {
      return Invalid(absl::StrCat("parameter '", parameter.name(),
                                  "' has no value; give every parameter or none"));
    }
    const auto& values = parameter.values();
    if (std::find(values.begin(), values.end(), it->second) == values.end()) {
      return Invalid(absl::StrCat("parameter '", parameter.name(), "' cannot be ", it->second,
                                  "; its values are ", absl::StrJoin(values, ", ").substr(0, 200)));
    }
  }
  if (requested.size() != static_cast<size_t>(spec.parameters_size())) {
    for (const auto& [name, value] : requested) {
      const bool known =
          std::any_of(spec.parameters().begin(), spec.parameters().end(),
                      [&](const v1::TuningParameter& p) { return p.name() == name; });
      if (!known) {
        return Invalid(absl::StrCat("the candidate has no parameter ", Quoted(name)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ValueMap> ResolveConfiguration(const v1::CandidateSpec& spec,
                                              const ValueMap& requested) {
  ASSAY_ASSIGN_OR_RETURN(std::vector<PlacedConstraint> constraints, Place(spec));
  if (requested.empty()) return Search(spec, std::move(constraints)).First();
  ASSAY_RETURN_IF_ERROR(CheckRequested(spec, requested));
  for (const PlacedConstraint& constraint : constraints) {
    const auto value = constraint.expression.Evaluate(requested);
    if (value.ok() && *value != 0) continue;
    return Invalid(absl::StrCat("the constraint ", Quoted(constraint.expression.text()),
                                " does not hold; choose other values"));
  }
  return requested;
}

std::string CandidateDigest(const v1::Candidate& candidate) {
  const v1::CandidateSpec& spec = candidate.spec();
  DigestBuilder digest;
  digest.Add("assay.candidate.v1").Add(ProblemId(spec.problem())).Add(int64_t{spec.language()});
  const auto add_all = [&digest](const auto& list) {
    digest.Add(static_cast<int64_t>(list.size()));
    for (const std::string& item : list) digest.Add(item);
  };
  add_all(CandidateSources(candidate));
  std::map<std::string, const std::string*> files;
  for (const v1::SourceFile& file : candidate.files()) files[file.path()] = &file.content();
  digest.Add(static_cast<int64_t>(files.size()));
  for (const auto& [path, content] : files) digest.Add(path).Add(*content);
  digest.Add(int64_t{spec.parameters_size()});
  for (const v1::TuningParameter& parameter : spec.parameters()) {
    digest.Add(parameter.name()).Add(int64_t{parameter.values_size()});
    for (const int64_t value : parameter.values()) digest.Add(value);
  }
  add_all(spec.constraints());
  digest.Add(int64_t{spec.plan().workspaces_size()});
  for (const v1::Workspace& workspace : spec.plan().workspaces()) {
    digest.Add(workspace.name()).Add(workspace.bytes());
  }
  digest.Add(int64_t{spec.plan().launches_size()});
  for (const v1::Launch& launch : spec.plan().launches()) {
    digest.Add(launch.kernel()).Add(launch.shared_bytes());
    add_all(launch.grid());
    add_all(launch.block());
    add_all(launch.args());
  }
  add_all(spec.compile_options());
  // Candidates from before there were contracts keep their digests.
  if (!spec.contract().empty()) digest.Add("contract").Add(spec.contract());
  return digest.Finish();
}

std::string CandidateName(std::string_view digest) {
  return absl::StrCat("candidates/", Av(digest.substr(0, 32)));
}

}  // namespace assay
