// The part of an audit that is made of mutants: which are made, what became of them, and whether a
// survivor is a hole in the check or the same program. Internal to the audit.
#ifndef ASSAY_CLIENT_AUDIT_MUTANTS_H_
#define ASSAY_CLIENT_AUDIT_MUTANTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/audit/audit.h"
#include "client/audit/cases.h"
#include "client/audit/generate.h"

namespace assay {

struct Mutant {
  std::string family;
  std::string what;  // "reference line 7: ..."
  Version original;
  Version changed;
  const v1::Candidate* base = nullptr;  // the candidate that was changed; null: the reference
  bool is_deletion = false;             // of a statement of the reference
  bool is_slight = false;               // as of Spoiler
  AuditCase first;  // judged on the small workloads; its evaluation on all, once it passed these
  enum class Fate { kOpen, kUncompiled, kWithoutWitness, kRejected, kSurvivor };
  Fate fate = Fate::kOpen;
};

// Deterministic in options.seed.
std::vector<Mutant> MakeMutants(const AuditMaterial& material, const std::string& reference,
                                const AuditOptions& options, const CaseMaker& maker);

// What a judged mutant's verdict makes of it: kOpen when it passed, kUncompiled when it could not
// be compiled or judged. One that ran out of time or memory is rejected: slips make endless loops.
Mutant::Fate FateOf(const v1::Outcome& outcome);

// Decides all that are open: those that pass all workloads too, and differ from what they were made
// from by more than `honest` (largest honest error of every output) on some verified input,
// survive.
absl::Status ResolveMutants(const v1::Problem& problem, const std::vector<double>& honest,
                            const CaseMaker& maker, AuditJudge* judge,
                            std::vector<Mutant>* mutants);

// Whether the verdict says that the candidate is wrong; not so when it does not compile, cannot be
// judged, the problem is at fault, or time or memory ran out, which a busy machine does too.
bool IsRejected(v1::Verdict verdict);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_MUTANTS_H_
