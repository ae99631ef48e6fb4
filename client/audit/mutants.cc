#include "client/audit/mutants.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/audit/mutate.h"

namespace assay {
namespace {

constexpr size_t kDeletionsMax = 40;
constexpr size_t kUniversalMax = 40;

// A text that mutants are made from.
struct Origin {
  std::string name;
  Version version;
  const v1::Candidate* base = nullptr;
};

// Where a drawn Mutation came from travels in front of `what`, up to the colon.
Mutant FromMutation(const Mutation& mutation, const Origin& origin) {
  Mutant mutant;
  mutant.family = mutation.family;
  mutant.what = absl::StrCat(origin.name, " ", mutation.what);
  mutant.original = origin.version;
  mutant.changed = origin.version;
  mutant.changed.source = mutation.family == "precision"
                              ? absl::StrCat(kRoundingHelpers, mutation.source)
                              : mutation.source;
  mutant.base = origin.base;
  mutant.is_deletion = mutation.is_deletion && origin.base == nullptr;
  return mutant;
}

// Single sources in C++ without parameters: what can be changed and still be one text.
std::vector<Origin> FindOrigins(const AuditMaterial& material, const std::string& reference) {
  std::vector<Origin> origins = {{"reference", {reference, true, "", ""}, nullptr}};
  for (const AuditCandidate& honest : material.honest) {
    const v1::Candidate& candidate = honest.candidate;
    if (candidate.spec().language() != v1::CPP || candidate.files_size() != 1 ||
        candidate.spec().parameters_size() > 0) {
      continue;
    }
    origins.push_back({honest.name, {candidate.files(0).content(), false, "", ""}, &candidate});
  }
  return origins;
}

std::vector<AuditCase*> Pointers(std::vector<AuditCase>& cases) {
  std::vector<AuditCase*> pointers;
  for (AuditCase& one : cases) pointers.push_back(&one);
  return pointers;
}

absl::Status JudgeCases(AuditJudge* judge, const std::vector<AuditCase*>& cases) {
  std::vector<v1::CreateEvaluationRequest> requests;
  for (const AuditCase* one : cases) requests.push_back(one->request);
  if (requests.empty()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const std::vector<v1::Evaluation> evaluations, judge->Judge(requests));
  for (size_t i = 0; i < cases.size(); ++i) cases[i]->evaluation = evaluations[i];
  return absl::OkStatus();
}

}  // namespace

bool IsRejected(v1::Verdict verdict) {
  switch (verdict) {
    case v1::RUNTIME_ERROR:
    case v1::INCORRECT:
    case v1::NONDETERMINISTIC:
    case v1::UNDEFINED_BEHAVIOR:
    case v1::GAMED:
    case v1::IMPLAUSIBLE:
      return true;
    default:
      return false;
  }
}

Mutant::Fate FateOf(const v1::Outcome& outcome) {
  if (outcome.verdict() == v1::PASSED) return Mutant::Fate::kOpen;
  const bool exhausted =
      (outcome.verdict() == v1::TIMED_OUT || outcome.verdict() == v1::RESOURCE_EXCEEDED) &&
      outcome.reason() != "COMPILE_TIMEOUT" && outcome.reason() != "COMPILE_MEMORY";
  return IsRejected(outcome.verdict()) || exhausted ? Mutant::Fate::kRejected
                                                    : Mutant::Fate::kUncompiled;
}

std::vector<Mutant> MakeMutants(const AuditMaterial& material, const std::string& reference,
                                const AuditOptions& options, const CaseMaker& maker) {
  MutateOptions mutate;
  for (const v1::Axis& axis : material.problem.axes()) mutate.axes.push_back(axis.name());
  mutate.roundings = ForbiddenRoundings(material.problem);

  std::vector<Mutant> mutants;
  std::vector<Mutation> pool;
  std::map<std::string, Mutant> made;  // by the key that a pooled Mutation carries
  const auto pooled = [&](Mutant mutant) {
    Mutation key;
    key.family = mutant.family;
    key.what = absl::StrCat(made.size());
    made[key.what] = std::move(mutant);
    pool.push_back(std::move(key));
  };
  size_t deletions = 0;
  for (const Origin& origin : FindOrigins(material, reference)) {
    for (const Mutation& mutation : FindMutations(origin.version.source, mutate)) {
      Mutant mutant = FromMutation(mutation, origin);
      // Every statement of the reference is left out in turn.
      if (mutant.is_deletion && ++deletions <= kDeletionsMax) {
        mutants.push_back(std::move(mutant));
      } else {
        pooled(std::move(mutant));
      }
    }
  }
  size_t universal = 0;
  for (const Spoiler& spoiler : Spoilers(material.problem)) {
    Mutant mutant;
    mutant.family = spoiler.family;
    mutant.what = absl::StrCat("reference: ", spoiler.what);
    mutant.original = {reference, true, "", ""};
    mutant.changed = {reference, true, spoiler.before, spoiler.after};
    mutant.is_slight = spoiler.is_slight;
    if (spoiler.family == "universal" && ++universal <= kUniversalMax) {
      mutants.push_back(std::move(mutant));
    } else {
      pooled(std::move(mutant));
    }
  }
  const size_t rest =
      options.mutants_max > mutants.size() ? options.mutants_max - mutants.size() : 0;
  for (const Mutation& drawn : SampleMutations(std::move(pool), rest, options.seed)) {
    mutants.push_back(std::move(made[drawn.what]));
  }
  for (size_t i = 0; i < mutants.size(); ++i) {
    mutants[i].first = maker.Source(absl::StrCat("mutant_", i, "_", mutants[i].family),
                                    MutantSource(material.problem, mutants[i].changed),
                                    AuditScope::kSmall, mutants[i].base);
  }
  return mutants;
}

absl::Status ResolveMutants(const v1::Problem& problem, const std::vector<double>& honest,
                            const CaseMaker& maker, AuditJudge* judge,
                            std::vector<Mutant>* mutants) {
  std::vector<Mutant*> open;
  for (Mutant& mutant : *mutants) {
    if (mutant.fate == Mutant::Fate::kOpen) open.push_back(&mutant);
  }
  // All workloads, of which the larger ones show what adds up.
  std::vector<AuditCase> again;
  for (const Mutant* mutant : open) {
    again.push_back(maker.Source(mutant->first.name, MutantSource(problem, mutant->changed),
                                 AuditScope::kAll, mutant->base));
  }
  ASSAY_RETURN_IF_ERROR(JudgeCases(judge, Pointers(again)));
  std::vector<Mutant*> passed;
  for (size_t i = 0; i < open.size(); ++i) {
    open[i]->first.evaluation = again[i].evaluation;
    open[i]->fate = FateOf(again[i].evaluation.outcome());
    if (open[i]->fate == Mutant::Fate::kOpen) passed.push_back(open[i]);
  }
  std::vector<AuditCase> witnesses;
  for (const Mutant* mutant : passed) {
    witnesses.push_back(maker.Source(
        absl::StrCat("witness_of_", mutant->first.name),
        WitnessSource(problem, mutant->original, mutant->changed, honest, /*exact=*/false),
        AuditScope::kAll, mutant->base));
  }
  ASSAY_RETURN_IF_ERROR(JudgeCases(judge, Pointers(witnesses)));
  for (size_t i = 0; i < passed.size(); ++i) {
    const v1::Outcome& outcome = witnesses[i].evaluation.outcome();
    const bool same = outcome.verdict() == v1::PASSED;
    passed[i]->fate = same ? Mutant::Fate::kWithoutWitness : Mutant::Fate::kSurvivor;
    if (!same && !IsRejected(outcome.verdict())) {
      absl::StrAppend(&passed[i]->what, " (no witness could be made: ", outcome.reason(), ")");
    }
  }
  return absl::OkStatus();
}

}  // namespace assay
