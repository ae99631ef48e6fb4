#include "server/services/admission.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/contract.h"
#include "kernels/problem.h"
#include "server/gate/gate.h"
#include "server/services/identity.h"
#include "store/records.h"

namespace assay {
namespace {

absl::Status Invalid(std::string_view reason, std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, reason, message);
}

// Hostile text, safe to print and cut.
std::string Quoted(std::string_view text) {
  const bool cut = text.size() > limits::kNameBytesMax;
  return absl::StrCat("'", absl::CHexEscape(Av(text.substr(0, limits::kNameBytesMax))),
                      cut ? "...'" : "'");
}

void SetTimestamp(absl::Time time, google::protobuf::Timestamp* out) {
  const int64_t nanos = absl::ToUnixNanos(time);
  out->set_seconds(nanos / 1'000'000'000);
  out->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

absl::Status CheckRequestId(std::string_view id) {
  if (id.size() > limits::kRequestIdBytesMax) {
    return Invalid("REQUEST_ID_INVALID",
                   absl::StrCat("request_id has ", id.size(), " bytes, at most ",
                                limits::kRequestIdBytesMax, " are allowed; use a UUID"));
  }
  for (char c : id) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return Invalid("REQUEST_ID_INVALID",
                     "request_id takes printable ASCII without blanks; use a UUID");
    }
  }
  return absl::OkStatus();
}

// The kind is the part before the first '-' or ':'.
absl::StatusOr<std::string_view> DeviceKind(std::string_view device_class) {
  const bool well_formed = !device_class.empty() && device_class.size() <= limits::kNameBytesMax &&
                           std::all_of(device_class.begin(), device_class.end(), [](char c) {
                             return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                                    absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
                                    c == '-' || c == '_' || c == ':' || c == '.';
                           });
  const std::string_view kind = device_class.substr(0, device_class.find_first_of("-:"));
  if (!well_formed || (kind != "cpu" && kind != "cuda" && kind != "emulated")) {
    return Invalid("DEVICE_CLASS_INVALID",
                   absl::StrCat("device_class ", Quoted(device_class),
                                " is not cpu, cuda or emulated, nor a class of one of them such as "
                                "cpu-amd-f23m1-avx2"));
  }
  return kind;
}

absl::Status CheckLanguage(std::string_view field, v1::Language language, std::string_view kind) {
  const bool is_host = language == v1::CPP;
  if (is_host == (kind == "cpu")) return absl::OkStatus();
  return Invalid("LANGUAGE_UNSUPPORTED",
                 absl::StrCat(Av(field), ": device kind ", Av(kind), " runs ",
                              kind == "cpu" ? "CPP" : "CUDA_CPP and PTX", ", not ",
                              v1::Language_Name(language), "; choose another device_class"));
}

// `level` is the resolved one.
absl::Status CheckWorkloads(const v1::Evaluation& sent, v1::Level level,
                            const v1::Problem& problem) {
  if (static_cast<size_t>(sent.workloads_size()) > limits::kWorkloadsPerEvaluationMax) {
    return Invalid("TOO_MANY_WORKLOADS", absl::StrCat(sent.workloads_size(), " workloads, at most ",
                                                      limits::kWorkloadsPerEvaluationMax,
                                                      " are allowed; split the evaluation"));
  }
  std::map<ValueMap, std::string> seen;  // by axes: a name and its axes are one workload
  // Without a selection every workload runs, and each problem has one that is measured.
  bool measures = sent.workloads().empty() || level == v1::VERIFY;
  for (const v1::WorkloadSelector& selector : sent.workloads()) {
    std::string name = selector.name();
    ValueMap axes;
    const auto known = std::find_if(
        problem.workloads().begin(), problem.workloads().end(),
        [&](const v1::Workload& workload) { return workload.name() == selector.name(); });
    if (selector.axes().empty() && known != problem.workloads().end()) {
      axes.insert(known->axes().begin(), known->axes().end());
      measures |= !known->verify_only();
    } else {
      // The checked, slower way: axes, and errors that list what is known.
      auto resolved = ResolveSelector(problem, selector);
      if (!resolved.ok()) {
        return GetReason(resolved.status()).empty()
                   ? ErrorWithReason(resolved.status().code(), "WORKLOAD_INVALID",
                                     Sv(resolved.status().message()))
                   : resolved.status();
      }
      name = std::move(resolved->name);
      axes = std::move(resolved->axes);
      measures |= !resolved->verify_only;
    }
    const auto [first, is_new] = seen.emplace(std::move(axes), name);
    if (!is_new) {
      return Invalid(
          "WORKLOAD_DUPLICATE",
          absl::StrCat(
              "workload ", Quoted(name), " is listed twice",
              name == first->second ? "" : absl::StrCat(", also as ", Quoted(first->second)),
              "; list it once"));
    }
  }
  if (!measures) {
    return Invalid(
        "NOTHING_TO_MEASURE",
        absl::StrCat("level ", v1::Level_Name(level),
                     " measures, but every workload that was chosen is only verified (",
                     seen.begin()->second, "); choose level VERIFY, or add another workload"));
  }
  return absl::OkStatus();
}

absl::Status CheckLevel(const v1::Evaluation& sent, bool has_baseline, v1::Evaluation* out) {
  const v1::Level level = sent.level() == v1::LEVEL_UNSPECIFIED ? v1::QUICK : sent.level();
  if (!v1::Level_IsValid(level)) {
    return Invalid("LEVEL_INVALID",
                   absl::StrCat("level ", static_cast<int>(level),
                                " is unknown; use VERIFY, QUICK, RANKED or PAIRED"));
  }
  if (sent.priority() < -limits::kPriorityMax || sent.priority() > limits::kPriorityMax) {
    return Invalid("PRIORITY_INVALID",
                   absl::StrCat("priority ", sent.priority(), " is not within -",
                                limits::kPriorityMax, " and ", limits::kPriorityMax));
  }
  out->set_level(level);
  out->set_priority(sent.priority());
  if (level != v1::PAIRED) {
    if (has_baseline || sent.pair_count() != 0) {
      return Invalid("BASELINE_UNEXPECTED",
                     "a baseline candidate and pair_count belong to level PAIRED; set it, or leave "
                     "them out");
    }
    return absl::OkStatus();
  }
  if (!has_baseline) {
    return Invalid("BASELINE_MISSING",
                   "level PAIRED compares with a baseline candidate; name or send one");
  }
  if (sent.pair_count() < 0 || sent.pair_count() > limits::kPairCountMax) {
    return Invalid("PAIR_COUNT_INVALID",
                   absl::StrCat("pair_count ", sent.pair_count(), " is not within 0 (default) and ",
                                limits::kPairCountMax));
  }
  out->set_pair_count(sent.pair_count() == 0 ? kGatePairsDefault : sent.pair_count());
  return absl::OkStatus();
}

// Who rounds more has less to do.
absl::Status CheckSameContract(const v1::Candidate& judged, const v1::Candidate& base,
                               const v1::Problem& problem) {
  ASSAY_ASSIGN_OR_RETURN(const auto* ours, FindContract(problem, judged.spec().contract()));
  ASSAY_ASSIGN_OR_RETURN(const auto* theirs, FindContract(problem, base.spec().contract()));
  if (ours == theirs) return absl::OkStatus();
  return Invalid("CONTRACT_MISMATCH",
                 absl::StrCat("the candidate is held to contract ", Quoted(ours->name()),
                              " and its baseline to ", Quoted(theirs->name()),
                              "; times of different contracts say nothing of each other"));
}

absl::Status SetConfiguration(const v1::Evaluation& sent, const v1::CandidateSpec& spec,
                              v1::Evaluation* out) {
  if (spec.parameters().empty() && sent.configuration().empty()) return absl::OkStatus();
  const ValueMap requested(sent.configuration().begin(), sent.configuration().end());
  ASSAY_ASSIGN_OR_RETURN(const ValueMap resolved, ResolveConfiguration(spec, requested));
  for (const auto& [name, value] : resolved) (*out->mutable_configuration())[name] = value;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckResourceName(std::string_view collection, std::string_view name) {
  const std::string_view id =
      name.starts_with(collection) ? name.substr(collection.size()) : std::string_view();
  const bool well_formed = !id.empty() && id.size() <= limits::kNameBytesMax &&
                           std::all_of(id.begin(), id.end(), [](char c) {
                             return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                                    c == '_' || c == '-' || c == '.';
                           });
  if (well_formed) return absl::OkStatus();
  return Invalid(
      "NAME_INVALID",
      absl::StrCat(Quoted(name), " is not a resource name; expected ", Av(collection),
                   "ID with an id of 1 to ", limits::kNameBytesMax, " letters, digits, _ - and ."));
}

absl::Status ProblemNotFound(std::string_view name) {
  return ErrorWithReason(
      absl::StatusCode::kNotFound, "PROBLEM_NOT_FOUND",
      absl::StrCat("problem ", Quoted(name), " is unknown; ListProblems tells what there is"));
}

absl::Status Admission::AdmitCandidate(std::string_view problem, v1::Candidate* candidate) const {
  const std::string problem_id = ProblemId(problem);
  if (candidate->spec().problem().empty()) {
    candidate->mutable_spec()->set_problem(problem_id);
  } else if (!problem.empty() && candidate->spec().problem() != problem_id) {
    return Invalid(
        "PROBLEM_MISMATCH",
        absl::StrCat("the candidate is for problem ", Quoted(candidate->spec().problem()),
                     ", the request for ", Quoted(problem_id), "; make them agree"));
  }
  ASSAY_RETURN_IF_ERROR(ValidateCandidate(*candidate));
  const std::string name = ProblemName(candidate->spec().problem());
  const std::shared_ptr<const v1::Problem> known = options_.catalogue->Find(name);
  if (known == nullptr) return ProblemNotFound(name);
  ASSAY_RETURN_IF_ERROR(CheckCandidateAgainstProblem(*candidate, *known));
  candidate->set_digest(CandidateDigest(*candidate));
  candidate->set_name(CandidateName(candidate->digest()));
  SetTimestamp(options_.clock->Now(), candidate->mutable_create_time());
  return absl::OkStatus();
}

absl::Status Admission::AdmitProblem(v1::Problem* problem) const {
  problem->set_name(ProblemName(problem->name()));
  ASSAY_RETURN_IF_ERROR(CheckResourceName("problems/", problem->name()));
  size_t bytes = 0;
  for (const v1::SourceFile& file : problem->files()) bytes += file.content().size();
  if (bytes > limits::kProblemBytesMax) {
    return Invalid("PROBLEM_TOO_LARGE",
                   absl::StrCat("the problem's files have ", bytes, " bytes, at most ",
                                limits::kProblemBytesMax, " are allowed"));
  }
  const absl::Status valid = ValidateProblem(*problem);
  if (!valid.ok()) {
    return GetReason(valid).empty()
               ? ErrorWithReason(valid.code(), "PROBLEM_INVALID", Sv(valid.message()))
               : valid;
  }
  problem->clear_audit();
  problem->set_digest(ProblemDigest(*problem));
  SetTimestamp(options_.clock->Now(), problem->mutable_create_time());
  return absl::OkStatus();
}

absl::StatusOr<const v1::Candidate*> Admission::ResolveCandidate(
    std::string_view field, std::string_view problem, std::string_view name, bool is_inline,
    v1::Candidate* sent, const v1::Candidate* stored, std::optional<v1::Candidate>* out) const {
  if (is_inline && !name.empty()) {
    return Invalid("CANDIDATE_AMBIGUOUS",
                   absl::StrCat(Av(field), ": both a name and a candidate are given; give one"));
  }
  if (is_inline) {
    out->emplace(std::move(*sent));
    const absl::Status admitted = AdmitCandidate(problem, &**out);
    if (!admitted.ok()) return Annotate(admitted, field);
    return &**out;
  }
  if (name.empty()) {
    return Invalid("CANDIDATE_MISSING",
                   absl::StrCat(Av(field), ": name a stored candidate or send one"));
  }
  ASSAY_RETURN_IF_ERROR(CheckResourceName("candidates/", name));
  if (stored == nullptr) {
    return ErrorWithReason(
        absl::StatusCode::kNotFound, "CANDIDATE_NOT_FOUND",
        absl::StrCat(Av(field), ": ", Quoted(name), " is not stored; send the candidate itself"));
  }
  if (!problem.empty() && ProblemName(stored->spec().problem()) != problem) {
    return Invalid("PROBLEM_MISMATCH",
                   absl::StrCat(Av(field), ": ", Quoted(name), " is for problem ",
                                Quoted(stored->spec().problem()), ", the request for ",
                                Quoted(problem), "; make them agree"));
  }
  return stored;
}

absl::StatusOr<NewEvaluation> Admission::Admit(v1::CreateEvaluationRequest* request,
                                               const v1::Candidate* candidate,
                                               const v1::Candidate* baseline) const {
  const v1::Evaluation& sent = request->evaluation();
  ASSAY_RETURN_IF_ERROR(CheckRequestId(request->request_id()));
  NewEvaluation result;
  v1::Evaluation& out = result.evaluation;
  // Read before mutable_candidate() makes an empty one.
  const bool is_inline = request->has_candidate();
  const bool is_baseline_inline = request->has_baseline_candidate();
  const bool has_baseline = is_baseline_inline || !sent.baseline_candidate().empty();
  ASSAY_RETURN_IF_ERROR(CheckLevel(sent, has_baseline, &out));
  out.set_device_class(sent.device_class().empty() ? "cpu" : sent.device_class());
  ASSAY_ASSIGN_OR_RETURN(const std::string_view kind, DeviceKind(out.device_class()));

  ASSAY_ASSIGN_OR_RETURN(
      const v1::Candidate* judged,
      ResolveCandidate("candidate", ProblemName(sent.problem()), sent.candidate(), is_inline,
                       request->mutable_candidate(), candidate, &result.candidate));
  out.set_candidate(judged->name());
  out.set_candidate_label(judged->spec().label());
  out.set_problem(ProblemName(judged->spec().problem()));
  ASSAY_RETURN_IF_ERROR(CheckLanguage("candidate", judged->spec().language(), kind));
  const v1::Candidate* base = nullptr;
  if (has_baseline) {
    ASSAY_ASSIGN_OR_RETURN(
        base, ResolveCandidate("baseline_candidate", out.problem(), sent.baseline_candidate(),
                               is_baseline_inline, request->mutable_baseline_candidate(), baseline,
                               &result.baseline_candidate));
    out.set_baseline_candidate(base->name());
    ASSAY_RETURN_IF_ERROR(CheckLanguage("baseline_candidate", base->spec().language(), kind));
  }
  const std::shared_ptr<const v1::Problem> problem = options_.catalogue->Find(out.problem());
  if (problem == nullptr) return ProblemNotFound(out.problem());
  // Those that came along are checked; a stored one may be older than this version of the problem.
  if (!is_inline) {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckCandidateAgainstProblem(*judged, *problem), "candidate"));
  }
  if (base != nullptr && !is_baseline_inline) {
    ASSAY_RETURN_IF_ERROR(
        Annotate(CheckCandidateAgainstProblem(*base, *problem), "baseline_candidate"));
  }
  if (base != nullptr) ASSAY_RETURN_IF_ERROR(CheckSameContract(*judged, *base, *problem));
  ASSAY_RETURN_IF_ERROR(CheckWorkloads(sent, out.level(), *problem));
  out.mutable_workloads()->Swap(request->mutable_evaluation()->mutable_workloads());
  ASSAY_RETURN_IF_ERROR(SetConfiguration(sent, judged->spec(), &out));

  if (result.candidate.has_value()) {
    result.candidate_fingerprint = CandidateFingerprint(*result.candidate);
  }
  if (result.baseline_candidate.has_value()) {
    result.baseline_fingerprint = CandidateFingerprint(*result.baseline_candidate);
  }
  Register(request->request_id(), request->allow_stored_answer(), &result);
  return result;
}

void Admission::Register(const std::string& request_id, bool allow_stored_answer,
                         NewEvaluation* evaluation) const {
  v1::Evaluation& out = evaluation->evaluation;
  if (!request_id.empty()) {
    evaluation->request_id = request_id;
    evaluation->request_digest = RequestDigest(out, allow_stored_answer);
  }
  out.set_name(options_.ids->NextName());
  out.set_state(v1::QUEUED);
  SetTimestamp(options_.clock->Now(), out.mutable_create_time());
  *out.mutable_update_time() = out.create_time();
  *out.mutable_timeline()->mutable_create_time() = out.create_time();
}

absl::StatusOr<NewEvaluation> Admission::AdmitReplay(const v1::CreateEvaluationRequest& request,
                                                     const v1::Evaluation& original,
                                                     const RanOn& ran_on,
                                                     const std::vector<v1::Worker>& workers) const {
  ASSAY_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  if (original.state() != v1::SUCCEEDED || !original.has_outcome()) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "REPLAY_NO_OUTCOME",
                           absl::StrCat(original.name(), " is ", v1::State_Name(original.state()),
                                        "; only what has an outcome can be replayed"));
  }
  if (original.outcome().nonce() == 0) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "REPLAY_NO_NONCE",
                           absl::StrCat(original.name(),
                                        " was judged by a worker that kept no nonce; submit its "
                                        "candidate again instead"));
  }
  NewEvaluation result;
  v1::Evaluation& out = result.evaluation;
  out.set_replay_of(original.name());
  out.set_candidate(original.candidate());
  out.set_candidate_label(original.candidate_label());
  out.set_problem(original.problem());
  *out.mutable_workloads() = original.workloads();
  out.set_device_class(ran_on.device_class.empty() ? original.device_class() : ran_on.device_class);
  out.set_level(original.level());
  *out.mutable_configuration() = original.configuration();
  out.set_baseline_candidate(original.baseline_candidate());
  out.set_pair_count(original.pair_count());
  const bool is_offered =
      std::any_of(workers.begin(), workers.end(), [&out](const v1::Worker& worker) {
        return worker.state() != v1::Worker::LOST &&
               std::any_of(worker.devices().begin(), worker.devices().end(),
                           [&out](const v1::Device& device) {
                             return DeviceMatches(out.device_class(), device);
                           });
      });
  if (!is_offered) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "DEVICE_CLASS_NOT_OFFERED",
        absl::StrCat(original.name(), " ran on device class '", out.device_class(),
                     "', which no worker offers now; start one"));
  }
  Register(request.request_id(), /*allow_stored_answer=*/false, &result);
  return result;
}

}  // namespace assay
