// CreateEvaluations: the hot path of the store. A new evaluation costs two inserts and, with a
// request_id, one look-up; candidates are found by name only when the insert meets a known one.
#include <optional>
#include <unordered_map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/records.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/writes.h"
#include "store/transitions.h"

namespace assay {
namespace {

// One evaluation of the call, ready to be bound.
struct Item {
  explicit Item(NewEvaluation input);

  v1::Evaluation evaluation;  // with logs, without samples: what the caller gets
  std::optional<CandidateRow> candidate;
  std::optional<CandidateRow> baseline_candidate;
  std::string request_id;
  std::string request_digest;
  std::string proto;
  std::string build_log;
  std::string output_log;
  std::vector<SampleRow> samples;

  // Found by Apply.
  int64_t problem_id = 0;
  int64_t problem_version = 0;
  int64_t candidate_id = 0;  // 0: to be inserted
  int64_t baseline_id = 0;
  std::optional<v1::Evaluation> existing;
  const Item* twin = nullptr;  // an earlier item of the call with the same request_id
};

Item::Item(NewEvaluation input)
    : evaluation(std::move(input.evaluation)),
      request_id(std::move(input.request_id)),
      request_digest(std::move(input.request_digest)) {
  if (input.candidate.has_value()) {
    candidate.emplace(*std::move(input.candidate), std::move(input.candidate_fingerprint));
  }
  if (input.baseline_candidate.has_value()) {
    baseline_candidate.emplace(*std::move(input.baseline_candidate),
                               std::move(input.baseline_fingerprint));
  }
  InitializeEvaluation(&evaluation);
  if (!evaluation.has_outcome()) {
    evaluation.SerializeToString(&proto);
    return;
  }
  OutcomeParts parts = SplitOutcome(std::move(*evaluation.mutable_outcome()));
  *evaluation.mutable_outcome() = std::move(parts.outcome);
  evaluation.SerializeToString(&proto);
  AddLogs(parts.build_log, parts.output_log, evaluation.mutable_outcome());
  build_log = std::move(parts.build_log);
  output_log = std::move(parts.output_log);
  for (OutcomeParts::Runner& runner : parts.runners) samples.emplace_back(std::move(runner));
}

class CreateEvaluations : public WriteOperation {
 public:
  CreateEvaluations(std::vector<NewEvaluation> evaluations,
                    StoreDone<std::vector<CreatedEvaluation>> done)
      : done_(std::move(done)) {
    items_.reserve(evaluations.size());
    for (NewEvaluation& evaluation : evaluations) {
      items_.emplace_back(std::move(evaluation));
      const Item& item = items_.back();
      bytes_ += item.proto.size();
      for (const auto* row : {&item.candidate, &item.baseline_candidate}) {
        if (row->has_value()) bytes_ += (*row)->proto.size() + (*row)->files.size();
      }
    }
  }

  size_t rows() const override { return items_.size(); }
  size_t bytes() const override { return bytes_; }
  bool refusable() const override { return true; }

  absl::Status Apply(WriteContext& context) override {
    refusal_ = absl::OkStatus();
    ASSAY_RETURN_IF_ERROR(Check(context));
    if (!refusal_.ok()) return absl::OkStatus();
    for (const Item& item : items_) {
      if (item.existing.has_value() || item.twin != nullptr) continue;
      ASSAY_RETURN_IF_ERROR(Insert(context, item));
    }
    return absl::OkStatus();
  }

  void Finish(const absl::Status& status) override {
    if (GetReason(status) == kStorageConstraint) {
      // Everything else that is unique or referred to was checked before.
      done_(ErrorWithReason(absl::StatusCode::kAlreadyExists, "EVALUATION_EXISTS",
                            absl::StrCat("an evaluation of this name exists: ", status.message())));
      return;
    }
    if (!status.ok()) return done_(status);
    if (!refusal_.ok()) return done_(refusal_);
    std::vector<CreatedEvaluation> created;
    created.reserve(items_.size());
    for (Item& item : items_) {
      if (item.twin != nullptr) {
        // The twin stands before, and its evaluation has moved to the result.
        created.push_back({created[static_cast<size_t>(item.twin - items_.data())].evaluation,
                           /*existed=*/true});
      } else if (item.existing.has_value()) {
        created.push_back({*std::move(item.existing), /*existed=*/true});
      } else {
        created.push_back({std::move(item.evaluation), /*existed=*/false});
      }
    }
    done_(std::move(created));
  }

 private:
  // Finds everything that can be refused, before anything is written.
  absl::Status Check(WriteContext& context);
  absl::Status CheckRequestId(WriteContext& context, Item& item);
  absl::Status CheckReferences(WriteContext& context, Item& item);
  // `own` is the candidate that the item brings. `id` stays 0 when the call brings it.
  absl::Status CheckCandidate(WriteContext& context, const std::string& name,
                              const std::optional<CandidateRow>& own, int64_t* id);
  absl::Status Insert(WriteContext& context, const Item& item);
  absl::StatusOr<int64_t> CandidateId(WriteContext& context, const std::string& name,
                                      const std::optional<CandidateRow>& own, int64_t known);
  void RefuseReuse(const Item& item) {
    refusal_ = ErrorWithReason(
        absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
        absl::StrCat("request_id '", absl::CHexEscape(item.request_id),
                     "' was used before with other content; use a new one for a new request"));
  }

  const StoreDone<std::vector<CreatedEvaluation>> done_;
  std::vector<Item> items_;
  size_t bytes_ = 0;
  absl::Status refusal_;
};

absl::Status CreateEvaluations::Check(WriteContext& context) {
  std::unordered_map<std::string_view, const Item*> by_request;
  for (Item& item : items_) {
    item.existing.reset();
    item.twin = nullptr;
    item.candidate_id = item.baseline_id = 0;
    if (!item.request_id.empty()) {
      if (items_.size() > 1) {
        const auto [found, fresh] = by_request.try_emplace(item.request_id, &item);
        if (!fresh && found->second->request_digest != item.request_digest) RefuseReuse(item);
        if (!fresh && !found->second->existing.has_value()) item.twin = found->second;
      }
      if (refusal_.ok() && item.twin == nullptr) {
        ASSAY_RETURN_IF_ERROR(CheckRequestId(context, item));
      }
    }
    if (refusal_.ok() && item.twin == nullptr && !item.existing.has_value()) {
      ASSAY_RETURN_IF_ERROR(CheckReferences(context, item));
    }
    if (!refusal_.ok()) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status CreateEvaluations::CheckRequestId(WriteContext& context, Item& item) {
  int64_t id = 0;
  {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement select,
        context.db.Cached("SELECT id, request_digest FROM evaluations WHERE request_id = ?1"));
    select->BindText(1, item.request_id);
    ASSAY_ASSIGN_OR_RETURN(const bool known, select->Step());
    if (!known) return absl::OkStatus();
    if (select->Text(1) != item.request_digest) {
      RefuseReuse(item);
      return absl::OkStatus();
    }
    id = select->Int(0);
  }
  ASSAY_ASSIGN_OR_RETURN(item.existing, ReadEvaluationById(context.db, id));
  return absl::OkStatus();
}

absl::Status CreateEvaluations::CheckReferences(WriteContext& context, Item& item) {
  ASSAY_ASSIGN_OR_RETURN(const WriteContext::KnownProblem* problem,
                         FindProblem(context, item.evaluation.problem()));
  if (problem == nullptr) {
    refusal_ = NotFound("PROBLEM_NOT_FOUND", item.evaluation.problem());
    return absl::OkStatus();
  }
  item.problem_id = problem->id;
  item.problem_version = problem->newest_version;
  ASSAY_RETURN_IF_ERROR(
      CheckCandidate(context, item.evaluation.candidate(), item.candidate, &item.candidate_id));
  if (!refusal_.ok() || item.evaluation.baseline_candidate().empty()) return absl::OkStatus();
  return CheckCandidate(context, item.evaluation.baseline_candidate(), item.baseline_candidate,
                        &item.baseline_id);
}

absl::Status CreateEvaluations::CheckCandidate(WriteContext& context, const std::string& name,
                                               const std::optional<CandidateRow>& own,
                                               int64_t* id) {
  if (own.has_value() && own->name == name) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(*id, FindCandidate(context, name));
  if (*id != 0) return absl::OkStatus();
  // Another item of the call may bring it.
  for (const Item& other : items_) {
    if (other.candidate.has_value() && other.candidate->name == name) return absl::OkStatus();
    if (other.baseline_candidate.has_value() && other.baseline_candidate->name == name) {
      return absl::OkStatus();
    }
  }
  refusal_ = NotFound("CANDIDATE_NOT_FOUND", name);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CreateEvaluations::CandidateId(WriteContext& context,
                                                       const std::string& name,
                                                       const std::optional<CandidateRow>& own,
                                                       int64_t known) {
  if (own.has_value()) {
    ASSAY_ASSIGN_OR_RETURN(const int64_t id, InsertCandidate(context, *own));
    if (own->name == name) return id;
  }
  if (known != 0 || name.empty()) return known;
  return FindCandidate(context, name);
}

absl::Status CreateEvaluations::Insert(WriteContext& context, const Item& item) {
  const v1::Evaluation& evaluation = item.evaluation;
  ASSAY_ASSIGN_OR_RETURN(
      const int64_t candidate_id,
      CandidateId(context, evaluation.candidate(), item.candidate, item.candidate_id));
  ASSAY_ASSIGN_OR_RETURN(const int64_t baseline_id,
                         CandidateId(context, evaluation.baseline_candidate(),
                                     item.baseline_candidate, item.baseline_id));
  ASSAY_ASSIGN_OR_RETURN(const int64_t id, InsertEvaluation(context, evaluation, item.proto,
                                                            {item.problem_id, item.problem_version,
                                                             candidate_id, baseline_id},
                                                            item.request_id, item.request_digest));
  if (!evaluation.has_outcome()) return absl::OkStatus();
  ASSAY_RETURN_IF_ERROR(InsertLogs(context, id, item.build_log, item.output_log));
  return InsertSamples(context, id, item.samples);
}

}  // namespace

absl::StatusOr<int64_t> InsertEvaluation(WriteContext& context, const v1::Evaluation& evaluation,
                                         std::string_view proto, const EvaluationRefs& refs,
                                         std::string_view request_id,
                                         std::string_view request_digest) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement insert,
      context.db.Cached(
          "INSERT INTO evaluations (name, problem_id, problem_version, candidate_id,"
          " baseline_candidate_id, device_class, label, level, state, verdict, reason, revision,"
          " answered, create_time, update_time, complete_time, request_id, request_digest, proto)"
          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, ?12, ?13, ?13, ?14, ?15, ?16,"
          " ?17)"));
  const int64_t create_time = ToUnixNanos(evaluation.create_time());
  insert->BindText(1, evaluation.name());
  insert->BindInt(2, refs.problem_id);
  insert->BindInt(3, refs.problem_version);
  insert->BindInt(4, refs.candidate_id);
  refs.baseline_id == 0 ? insert->BindNull(5) : insert->BindInt(5, refs.baseline_id);
  insert->BindText(6, evaluation.device_class());
  insert->BindText(7, evaluation.candidate_label());
  insert->BindInt(8, evaluation.level());
  insert->BindInt(9, evaluation.state());
  insert->BindInt(10, evaluation.outcome().verdict());
  insert->BindText(11, evaluation.outcome().reason());
  const bool finished = !IsUnfinished(evaluation.state());
  insert->BindInt(12, finished ? 1 : 0);
  insert->BindInt(13, create_time);
  finished ? insert->BindInt(14, ToUnixNanos(evaluation.timeline().complete_time()))
           : insert->BindNull(14);
  insert->BindTextOrNull(15, request_id);
  if (request_id.empty()) {
    insert->BindNull(16);
  } else {
    insert->BindText(16, request_digest);
  }
  insert->BindBlob(17, proto);
  ASSAY_RETURN_IF_ERROR(insert->Run());
  return context.db.last_insert_id();
}

std::unique_ptr<WriteOperation> NewCreateEvaluations(
    std::vector<NewEvaluation> evaluations, StoreDone<std::vector<CreatedEvaluation>> done) {
  return std::make_unique<CreateEvaluations>(std::move(evaluations), std::move(done));
}

}  // namespace assay
