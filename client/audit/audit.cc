#include "client/audit/audit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "client/audit/cases.h"
#include "client/audit/generate.h"
#include "client/audit/margins.h"
#include "client/audit/mutants.h"
#include "client/audit/mutate.h"
#include "client/audit/work_model.h"
#include "kernels/problem.h"

namespace assay {
namespace {

// Tolerances that an answer without signal is off by in every output: zeros, and the others.
constexpr double kSignalOfZeros = 100;
constexpr double kSignalLeast = 10;
constexpr double kSeparation = 4;   // between honest errors, the tolerance and near misses
constexpr double kHandshakes = 20;  // that a workload takes at least, to be timed
constexpr double kRejectedLeast = 0.98;
constexpr double kPrecisionRejectedLeast = 0.9;
// Judgements of each honest candidate, each on inputs of its own: a tolerance that is too narrow
// shows in some of them only.
constexpr int kHonestDraws = 10;
constexpr int kHonestDeviceDraws = 3;  // where it is emulated

// "INCORRECT (MISMATCH)".
std::string VerdictText(const v1::Outcome& outcome) {
  return absl::StrCat(v1::Verdict_Name(outcome.verdict()), " (", outcome.reason(), ")");
}

class Auditor {
 public:
  Auditor(const AuditMaterial& material, const AuditOptions& options, AuditJudge* judge)
      : material_(material),
        problem_(material.problem),
        options_(options),
        judge_(judge),
        maker_(&material.problem, &scopes_) {}

  absl::StatusOr<v1::ProblemAudit> Run() {
    audit_.set_problem(problem_.name());
    audit_.set_problem_version(problem_.version());
    audit_.set_problem_digest(problem_.digest());
    audit_.set_seed(options_.seed);
    audit_.set_harness_version(options_.harness_version);
    ASSAY_ASSIGN_OR_RETURN(scopes_, FindScopes(problem_));
    ASSAY_ASSIGN_OR_RETURN(reference_, ReferenceSource(problem_));
    Make();
    ASSAY_RETURN_IF_ERROR(JudgeAll());
    Oracle();
    Honest();
    ASSAY_RETURN_IF_ERROR(Sensitivity());
    Trivial();
    Signal();
    ASSAY_RETURN_IF_ERROR(Mutants());
    ASSAY_RETURN_IF_ERROR(Separation());
    Liveness();
    Measured();
    steps_["work_model"] = CheckWorkModel(problem_, device_);
    Contract();
    SelfHosting();
    Order();
    return std::move(audit_);
  }

 private:
  void Make() {
    oracle_.push_back(
        maker_.Source("oracle", OracleSource(problem_, reference_), AuditScope::kAll));
    const Version reference = {reference_, true, "", ""};
    oracle_.push_back(maker_.Source(
        "oracle_twice", WitnessSource(problem_, reference, reference, {}, true), AuditScope::kAll));
    for (const AuditCandidate& one : material_.honest) {
      if (one.candidate.spec().language() == v1::CPP) {
        const AuditCase made = maker_.Candidate(one, v1::VERIFY, "cpu", AuditScope::kAll);
        honest_.insert(honest_.end(), kHonestDraws, made);
        if (measured_.empty()) {
          measured_.push_back(maker_.Candidate(one, v1::QUICK, "cpu", AuditScope::kAll));
        }
      } else if (!options_.emulated_class.empty()) {
        const AuditCase made =
            maker_.Candidate(one, v1::VERIFY, options_.emulated_class, AuditScope::kSmall);
        device_.insert(device_.end(), kHonestDeviceDraws, made);
      }
    }
    for (const AuditCandidate& one : material_.wrong) {
      if (one.candidate.spec().language() == v1::CPP) {
        wrong_.push_back(maker_.Candidate(one, v1::VERIFY, "cpu", AuditScope::kAll));
      } else if (!options_.emulated_class.empty()) {
        wrong_.push_back(
            maker_.Candidate(one, v1::VERIFY, options_.emulated_class, AuditScope::kSmall));
      }
    }
    trivial_ = TrivialCases(problem_, reference_, scopes_, maker_);
    inputs_ = SensitivityCases(problem_, reference_, /*reflect=*/true, maker_);
    axes_ = AxisCases(problem_, reference_, maker_);
    liveness_ = MakeLivenessCases(problem_, reference_, maker_);
    mutants_ = MakeMutants(material_, reference_, options_, maker_);
  }

  // Everything that does not depend on an answer is one round, so that all workers are busy.
  absl::Status JudgeAll() {
    std::vector<AuditCase*> all;
    for (std::vector<AuditCase>* cases :
         {&oracle_, &honest_, &device_, &measured_, &wrong_, &trivial_, &inputs_, &axes_,
          &liveness_.accept, &liveness_.reject}) {
      for (AuditCase& one : *cases) all.push_back(&one);
    }
    for (Mutant& mutant : mutants_) all.push_back(&mutant.first);
    return Judge(all);
  }

  absl::Status Judge(const std::vector<AuditCase*>& cases) {
    if (options_.progress) options_.progress(absl::StrCat(cases.size(), " candidates to judge"));
    std::vector<v1::CreateEvaluationRequest> requests;
    for (const AuditCase* one : cases) requests.push_back(one->request);
    ASSAY_ASSIGN_OR_RETURN(const std::vector<v1::Evaluation> evaluations, judge_->Judge(requests));
    for (size_t i = 0; i < cases.size(); ++i) cases[i]->evaluation = evaluations[i];
    return absl::OkStatus();
  }

  // A step that passed unless failures are added.
  v1::AuditStep& Step(const std::string& name) {
    v1::AuditStep& step = steps_[name];
    step.set_name(name);
    step.set_passed(true);
    return step;
  }
  static void Fail(v1::AuditStep& step, std::string what) {
    step.set_passed(false);
    step.add_failures(std::move(what));
  }
  static void Skip(v1::AuditStep& step, std::string why) {
    step.set_passed(false);
    step.set_skipped(true);
    step.set_summary(std::move(why));
  }
  static void ExpectPassed(const std::vector<AuditCase>& cases, v1::AuditStep& step) {
    for (const AuditCase& one : cases) {
      const v1::Outcome& outcome = one.evaluation.outcome();
      if (outcome.verdict() != v1::PASSED) {
        Fail(step, absl::StrCat(one.name, ": ", VerdictText(outcome)));
      }
    }
  }
  static void ExpectRejected(const std::vector<AuditCase>& cases, v1::AuditStep& step) {
    for (const AuditCase& one : cases) {
      const v1::Outcome& outcome = one.evaluation.outcome();
      if (IsRejected(outcome.verdict())) continue;
      // Says as much of the machine as of the candidate.
      const bool exhausted =
          outcome.verdict() == v1::TIMED_OUT || outcome.verdict() == v1::RESOURCE_EXCEEDED;
      Fail(step, exhausted ? absl::StrCat(one.name, ": not judged, ", VerdictText(outcome),
                                          "; audit again on a machine with less to do")
                           : absl::StrCat(one.name, ": ", VerdictText(outcome)));
    }
  }
  static size_t CountRejected(const std::vector<AuditCase>& cases) {
    return static_cast<size_t>(std::count_if(cases.begin(), cases.end(), [](const AuditCase& one) {
      return IsRejected(one.evaluation.outcome().verdict());
    }));
  }

  void Oracle() {
    v1::AuditStep& step = Step("oracle");
    ExpectPassed(oracle_, step);
    step.set_summary(absl::StrCat("the reference as a candidate on ", scopes_.all.size(),
                                  " workloads, and twice in one call with the same bits"));
  }

  void Honest() {
    v1::AuditStep& step = Step("honest");
    int rejected = 0;
    std::map<std::string, int> rejected_of;
    for (const std::vector<AuditCase>* cases : {&honest_, &device_}) {
      for (const AuditCase& one : *cases) {
        const v1::Outcome& outcome = one.evaluation.outcome();
        if (outcome.verdict() == v1::PASSED) continue;
        // What an emulated device cannot run says nothing of the problem.
        if (cases == &device_ && outcome.verdict() == v1::UNSUPPORTED) continue;
        ++rejected;
        ++rejected_of[absl::StrCat(one.name, ": ", VerdictText(outcome))];
      }
    }
    for (const auto& [what, times] : rejected_of) Fail(step, absl::StrCat(what, ", ", times, "x"));
    step.set_summary(absl::StrCat(rejected, " rejected of ", honest_.size(), " judgements of ",
                                  honest_.size() / kHonestDraws, " candidates on the CPU and ",
                                  device_.size(), " of ", device_.size() / kHonestDeviceDraws,
                                  " on an emulated device"));
    // Without, nothing tells whether the tolerance lets anybody in.
    if (honest_.empty()) {
      Fail(step, "no honest candidate in C++ is at hand; add one to candidates/ of the problem");
    }
    v1::AuditStep& validity = Step("validity");
    std::vector<std::string> cases;
    for (const AuditCase& one : oracle_) {
      for (const v1::WorkloadResult& result : one.evaluation.outcome().workload_results()) {
        for (const std::string& name : result.verification().cases()) {
          if (std::find(cases.begin(), cases.end(), name) == cases.end()) cases.push_back(name);
        }
      }
    }
    if (!step.passed() && !step.skipped()) Fail(validity, "honest candidates disagree, see honest");
    validity.set_summary(
        absl::StrCat("honest candidates agree on every input case: ", absl::StrJoin(cases, ", ")));
    FindHonestErrors();
  }

  // Others are held to tolerances of their own.
  bool IsUnderFirstContract(const AuditCase& one) const {
    const std::string& contract = one.request.candidate().spec().contract();
    return contract.empty() || problem_.contracts_size() == 0 ||
           contract == problem_.contracts(0).name();
  }

  // Largest error of honest candidates and of the oracle under the first contract, by output; at
  // least what rounding to the output's type costs.
  void FindHonestErrors() {
    for (const v1::Tensor& tensor : problem_.tensors()) {
      if (tensor.role() != v1::Tensor::OUTPUT) continue;
      Errors errors;
      const int bits = tensor.dtype() == v1::F64    ? 53
                       : tensor.dtype() == v1::F16  ? 11
                       : tensor.dtype() == v1::BF16 ? 8
                                                    : 24;
      errors.rounding = std::ldexp(1.0, -bits);
      for (const std::vector<AuditCase>* cases : {&oracle_, &honest_, &device_}) {
        for (const AuditCase& one : *cases) {
          if (one.evaluation.outcome().verdict() != v1::PASSED || !IsUnderFirstContract(one)) {
            continue;
          }
          for (const v1::WorkloadResult& result : one.evaluation.outcome().workload_results()) {
            for (const v1::OutputCheck& check : result.verification().outputs()) {
              if (check.tensor() != tensor.name()) continue;
              errors.l2 = std::max(errors.l2, check.relative_l2());
              errors.element = std::max(errors.element, check.element_error_max());
            }
          }
        }
      }
      honest_errors_[tensor.name()] = errors;
      honest_elements_.push_back(std::max(errors.element, errors.rounding));
    }
  }

  absl::Status Sensitivity() {
    v1::AuditStep& step = Step("sensitivity");
    // An even function does not feel a reflection: what passed gets another change.
    std::vector<AuditCase> other = SensitivityCases(problem_, reference_, false, maker_);
    std::vector<AuditCase*> again;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].evaluation.outcome().verdict() != v1::PASSED) continue;
      inputs_[i] = other[i];
      again.push_back(&inputs_[i]);
    }
    if (!again.empty()) ASSAY_RETURN_IF_ERROR(Judge(again));
    ExpectRejected(inputs_, step);
    ExpectRejected(axes_, step);
    step.set_summary(absl::StrCat(CountRejected(inputs_) + CountRejected(axes_), " of ",
                                  inputs_.size() + axes_.size(),
                                  " changes of one input in one place, or of one axis, are seen"));
    return absl::OkStatus();
  }

  void Trivial() {
    v1::AuditStep& step = Step("trivial");
    ExpectRejected(trivial_, step);
    std::vector<std::string> names;
    for (const AuditCase& one : trivial_) names.push_back(one.name);
    step.set_summary(absl::StrCat(CountRejected(trivial_), " of ", trivial_.size(),
                                  " rejected: ", absl::StrJoin(names, ", ")));
  }

  void Signal() {
    v1::AuditStep& step = Step("signal");
    double least = std::numeric_limits<double>::infinity();
    for (const AuditCase& one : trivial_) {
      const v1::Outcome& outcome = one.evaluation.outcome();
      const bool tells = one.name == "zeros" || one.name == "mean" || one.name == "other_inputs" ||
                         one.name == "first_row";
      if (!tells || !IsRejected(outcome.verdict())) continue;
      const double enough = one.name == "zeros" ? kSignalOfZeros : kSignalLeast;
      for (const auto& [tensor, margin] : Margins(problem_, outcome)) {
        least = std::min(least, margin);
        if (margin >= enough) continue;
        Fail(step, absl::StrFormat("%s: %s is off by %.3g tolerances only, %g are asked for",
                                   tensor, one.name, margin, enough));
      }
    }
    step.set_summary(std::isinf(least)
                         ? "zeros, means, answers to other inputs: any bit is seen"
                         : absl::StrFormat("zeros, means, repeated rows, answers to other inputs "
                                           "are off by %.3g tolerances at least",
                                           least));
  }

  absl::Status Mutants() {
    for (Mutant& mutant : mutants_) mutant.fate = FateOf(mutant.first.evaluation.outcome());
    if (options_.progress) options_.progress("mutants that passed, again on all workloads");
    ASSAY_RETURN_IF_ERROR(ResolveMutants(problem_, honest_elements_, maker_, judge_, &mutants_));
    int total = 0;
    int rejected = 0;
    v1::AuditStep& step = Step("mutants");
    for (const char* name : kMutantFamilies) {
      v1::MutantFamily& family = *audit_.add_families();
      family.set_name(name);
      for (const Mutant& mutant : mutants_) {
        if (mutant.family == name) Count(mutant, family);
      }
      const int missed = family.mutant_count() - family.rejected_count();
      total += family.mutant_count();
      rejected += family.rejected_count();
      const bool universal = family.name() == "universal";
      const double least = universal                      ? 1
                           : family.name() == "precision" ? kPrecisionRejectedLeast
                                                          : 0;
      if (family.rejected_count() < least * family.mutant_count()) {
        Fail(step,
             absl::StrCat("family ", name, ": ", missed, " of ", family.mutant_count(), " pass"));
      }
    }
    if (rejected < kRejectedLeast * total) {
      Fail(step, absl::StrCat(total - rejected, " of ", total, " pass"));
    }
    step.set_summary(absl::StrCat(rejected, " of ", total, " with a witness rejected, of ",
                                  mutants_.size(), " made"));
    if (total == 0) Fail(step, "no mutant has a witness");
    OpDeletion();
    return absl::OkStatus();
  }

  static void Count(const Mutant& mutant, v1::MutantFamily& family) {
    family.set_generated_count(family.generated_count() + 1);
    const bool uncompiled = mutant.fate == Mutant::Fate::kUncompiled;
    if (uncompiled || mutant.fate == Mutant::Fate::kWithoutWitness) {
      family.set_discarded_count(family.discarded_count() + 1);
      if (uncompiled) {
        family.set_uncompiled_count(family.uncompiled_count() + 1);
      } else {
        family.add_without_witness(mutant.what);
      }
      return;
    }
    family.set_mutant_count(family.mutant_count() + 1);
    if (mutant.fate == Mutant::Fate::kRejected) {
      family.set_rejected_count(family.rejected_count() + 1);
    } else {
      family.add_survivors(mutant.what);
    }
  }

  void OpDeletion() {
    v1::AuditStep& step = Step("op_deletion");
    int count = 0;
    for (const Mutant& mutant : mutants_) {
      if (!mutant.is_deletion || mutant.fate == Mutant::Fate::kUncompiled) continue;
      ++count;
      if (mutant.fate != Mutant::Fate::kRejected) {
        Fail(step, absl::StrCat("redundant: ", mutant.what));
      }
    }
    step.set_summary(absl::StrCat(count, " statements of the reference left out, one at a time"));
    if (count == 0) {
      Fail(step,
           "no statement of the reference could be left out; write its results in statements of "
           "their own, like `y[i] = ...;`");
    }
  }

  // A judgement ends with the first workload that is wrong, often one that is hardly wrong. By how
  // much the case is off in the worst of its workloads, each judged by itself.
  absl::StatusOr<double> WorstMargin(const AuditCase& one) {
    std::vector<AuditCase> apart;
    for (const v1::WorkloadSelector& workload : one.request.evaluation().workloads()) {
      AuditCase& made = apart.emplace_back(one);
      made.request.mutable_evaluation()->clear_workloads();
      *made.request.mutable_evaluation()->add_workloads() = workload;
    }
    std::vector<AuditCase*> cases;
    for (AuditCase& made : apart) cases.push_back(&made);
    ASSAY_RETURN_IF_ERROR(Judge(cases));
    double margin = 0;
    for (const AuditCase& made : apart) {
      const v1::Outcome& outcome = made.evaluation.outcome();
      if (IsRejected(outcome.verdict())) margin = std::max(margin, Margin(problem_, outcome));
    }
    return margin;
  }

  absl::Status Separation() {
    v1::AuditStep& step = Step("separation");
    double honest_margin = std::numeric_limits<double>::infinity();
    bool scaled = false;
    for (const v1::Tensor& tensor : problem_.tensors()) {
      if (tensor.role() != v1::Tensor::OUTPUT) continue;
      const v1::TolerancePolicy& tolerance = ToleranceOf(problem_, tensor);
      if (tolerance.kind() != v1::TolerancePolicy::SCALED) continue;
      scaled = true;
      const Errors& errors = honest_errors_[tensor.name()];
      const double margin = std::min(tolerance.relative_l2_max() / errors.l2,
                                     tolerance.element_max() / errors.element);
      honest_margin = std::min(honest_margin, margin);
      if (margin < kSeparation) {
        Fail(step,
             absl::StrFormat("%s: honest errors reach %.3g (L2) and %.3g (element), less than "
                             "%g times below the tolerance",
                             tensor.name(), errors.l2, errors.element, kSeparation));
      }
    }
    double wrong_margin = std::numeric_limits<double>::infinity();
    std::vector<std::pair<std::string, const AuditCase*>> wrong;
    for (const std::vector<AuditCase>* cases : {&wrong_, &trivial_}) {
      for (const AuditCase& one : *cases) wrong.emplace_back(one.name, &one);
    }
    for (const Mutant& mutant : mutants_) {
      if (mutant.family != "universal" || mutant.is_slight) continue;
      wrong.emplace_back(mutant.what, &mutant.first);
    }
    for (const auto& [name, one] : wrong) {
      if (!IsRejected(one->evaluation.outcome().verdict())) continue;
      double margin = Margin(problem_, one->evaluation.outcome());
      if (margin < kSeparation) {
        ASSAY_ASSIGN_OR_RETURN(margin, WorstMargin(*one));
      }
      wrong_margin = std::min(wrong_margin, margin);
      if (margin < kSeparation) {
        Fail(step, absl::StrFormat("%s is off by %.3g tolerances only", name, margin));
      }
    }
    step.set_summary(absl::StrCat(
        !scaled ? "every bit counts"
        : std::isinf(honest_margin)
            ? "honest errors are exactly 0"
            : absl::StrFormat("tolerance over the largest honest error: %.3g", honest_margin),
        std::isinf(wrong_margin)
            ? ""
            : absl::StrFormat("; least error of what must be rejected over the tolerance: %.3g",
                              wrong_margin)));
    return absl::OkStatus();
  }

  void Liveness() {
    v1::AuditStep& step = Step("liveness");
    ExpectPassed(liveness_.accept, step);
    ExpectRejected(liveness_.reject, step);
    step.set_summary(absl::StrCat(liveness_.accept.size(), " errors of half the tolerance, ",
                                  liveness_.reject.size(), " beyond it"));
  }

  // Steps that times tell: size, roofline, metamorphic.
  void Measured() {
    v1::AuditStep& size = Step("size");
    v1::AuditStep& roofline = Step("roofline");
    v1::AuditStep& metamorphic = Step("metamorphic");
    if (measured_.empty()) {
      for (v1::AuditStep* step : {&size, &roofline, &metamorphic}) {
        Fail(*step, "no honest candidate in C++ is at hand, so that nothing was timed");
      }
      return;
    }
    const v1::Outcome& outcome = measured_[0].evaluation.outcome();
    metamorphic.set_summary(
        problem_.transforms_size() > 0
            ? absl::StrCat(problem_.transforms_size(), " declared; every timed call of ",
                           measured_[0].name, " was on transformed inputs")
            : absl::StrCat("the problem declares no transforms; timed calls of ", measured_[0].name,
                           " were compared on inputs as they are"));
    if (outcome.verdict() == v1::IMPLAUSIBLE) {
      Fail(roofline, absl::StrCat(measured_[0].name, ": ", outcome.message()));
    } else if (outcome.verdict() != v1::PASSED) {
      Fail(metamorphic, absl::StrCat(measured_[0].name, ": ", VerdictText(outcome)));
    }
    std::vector<std::string> tiny;
    int timed = 0;
    double efficiency = 0;
    for (const v1::WorkloadResult& result : outcome.workload_results()) {
      const v1::Measurement& measurement = result.measurement();
      if (!(measurement.median_ns() > 0)) continue;
      ++timed;
      if (measurement.median_ns() < kHandshakes * measurement.handshake_ns()) {
        tiny.push_back(result.workload());
      }
      efficiency = std::max(efficiency, result.efficiency_ratio());
      if (result.efficiency_ratio() > 1) {
        Fail(roofline, absl::StrCat(result.workload(), " is faster than its ceiling"));
      }
    }
    if (timed > 0 && static_cast<int>(tiny.size()) == timed) {
      Fail(size, "every workload is shorter than 20 handshakes");
    }
    size.set_summary(absl::StrCat(
        timed, " workloads timed; ",
        tiny.empty() ? "all longer than 20 handshakes"
                     : absl::StrCat("below 20 handshakes: ", absl::StrJoin(tiny, ", "))));
    roofline.set_summary("no workload is faster than its ceiling");
    if (timed == 0) {
      for (v1::AuditStep* step : {&size, &roofline, &metamorphic}) {
        Fail(*step,
             absl::StrCat("nothing of ", measured_[0].name, " was timed: ", VerdictText(outcome)));
      }
    }
  }

  void Contract() {
    v1::AuditStep& step = Step("contract");
    if (problem_.arithmetic().empty() && problem_.contracts_size() == 0) {
      Fail(step, "neither `arithmetic` nor `contracts` says what a candidate may do with numbers");
    }
    std::vector<std::string> names;
    for (const v1::ArithmeticContract& contract : problem_.contracts()) {
      names.push_back(contract.name());
    }
    step.set_summary(names.empty() ? "in words"
                                   : absl::StrCat("judged by ", names[0],
                                                  "; declared: ", absl::StrJoin(names, ", ")));
  }

  void SelfHosting() {
    v1::AuditStep& step = Step("self_hosting");
    ExpectRejected(wrong_, step);
    step.set_summary(
        absl::StrCat(CountRejected(wrong_), " of ", wrong_.size(), " near misses rejected"));
    if (wrong_.empty()) Skip(step, "the problem has no near misses");
  }

  // Steps in the order of the report, and the verdict.
  void Order() {
    audit_.set_passed(true);
    for (const char* name : {"oracle", "signal", "sensitivity", "trivial", "op_deletion", "mutants",
                             "honest", "separation", "liveness", "validity", "size", "roofline",
                             "work_model", "contract", "metamorphic", "self_hosting"}) {
      const v1::AuditStep& step = steps_[name];
      if (!step.passed() && !step.skipped()) audit_.set_passed(false);
      *audit_.add_steps() = step;
    }
  }

  struct Errors {
    double l2 = 0;
    double element = 0;
    double rounding = 0;
  };

  const AuditMaterial& material_;
  const v1::Problem& problem_;
  const AuditOptions& options_;
  AuditJudge* const judge_;
  AuditScopes scopes_;
  const CaseMaker maker_;
  std::string reference_;
  std::vector<AuditCase> oracle_, honest_, device_, measured_, wrong_, trivial_, inputs_, axes_;
  LivenessCases liveness_;
  std::vector<Mutant> mutants_;
  std::map<std::string, Errors> honest_errors_;
  std::vector<double> honest_elements_;  // by output, in the problem's order
  std::map<std::string, v1::AuditStep> steps_;
  v1::ProblemAudit audit_;
};

}  // namespace

absl::StatusOr<v1::ProblemAudit> AuditProblem(const AuditMaterial& material,
                                              const AuditOptions& options, AuditJudge* judge) {
  return Auditor(material, options, judge).Run();
}

}  // namespace assay
