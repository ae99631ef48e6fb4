// Admission: everything that can be said against a request before it is stored. Pure apart from the
// catalogue, the clock and the ids; never touches the store, so RPC threads may call it.
#ifndef ASSAY_SERVER_SERVICES_ADMISSION_H_
#define ASSAY_SERVER_SERVICES_ADMISSION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/services/catalogue.h"
#include "server/services/ids.h"
#include "store/store.h"

namespace assay {

// Thread-safe. The error reasons are listed in proto/README.md.
class Admission {
 public:
  struct Options {
    Clock* clock = nullptr;
    const Catalogue* catalogue = nullptr;
    EvaluationIds* ids = nullptr;
  };
  explicit Admission(const Options& options) : options_(options) {}

  // `candidate` and `baseline` are the stored ones (files are not needed) that the request names;
  // null for those that it brings along. The result is ready for Store::CreateEvaluations:
  // configuration, level, pair count and candidate names are resolved, output-only fields that the
  // client sent are dropped. Consumes the request: its candidates move to the result.
  absl::StatusOr<NewEvaluation> Admit(v1::CreateEvaluationRequest* request,
                                      const v1::Candidate* candidate,
                                      const v1::Candidate* baseline) const;

  // The evaluation that judges `original`, which is read from the store, again from its nonce, on
  // the exact class that it ran on. FAILED_PRECONDITION with reason REPLAY_NO_OUTCOME,
  // REPLAY_NO_NONCE, or DEVICE_CLASS_NOT_OFFERED when no worker of `workers` has that class.
  absl::StatusOr<NewEvaluation> AdmitReplay(const v1::CreateEvaluationRequest& request,
                                            const v1::Evaluation& original, const RanOn& ran_on,
                                            const std::vector<v1::Worker>& workers) const;

  // Checks a candidate that came over the wire, alone and against the problem it names (or
  // `problem`, a resource name, when it names none); sets name, digest and create_time.
  absl::Status AdmitCandidate(std::string_view problem, v1::Candidate* candidate) const;

  // Checks the problem and sets digest and create_time. Parses every expression: not for RPC
  // threads.
  absl::Status AdmitProblem(v1::Problem* problem) const;

 private:
  // Gives it its name, its times, and what `request_id` is bound to.
  void Register(const std::string& request_id, bool allow_stored_answer,
                NewEvaluation* evaluation) const;
  absl::StatusOr<const v1::Candidate*> ResolveCandidate(
      std::string_view field, std::string_view problem, std::string_view name, bool is_inline,
      v1::Candidate* sent, const v1::Candidate* stored, std::optional<v1::Candidate>* out) const;

  const Options options_;
};

// INVALID_ARGUMENT with reason NAME_INVALID unless `name` is `collection` (e.g. "evaluations/") and
// an id of [A-Za-z0-9_.-], at most limits::kNameBytesMax bytes.
absl::Status CheckResourceName(std::string_view collection, std::string_view name);

// NOT_FOUND with reason PROBLEM_NOT_FOUND.
absl::Status ProblemNotFound(std::string_view name);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_ADMISSION_H_
