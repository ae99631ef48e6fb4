#include "store/sqlite/reads.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/records.h"

namespace assay {
namespace {

absl::Status Corrupt(std::string_view what) {
  return ErrorWithReason(absl::StatusCode::kDataLoss, "STORAGE_CORRUPT",
                         absl::StrCat("the database holds ", Av(what),
                                      " that does not parse; restore it from a copy"));
}

// The resource of a row whose columns are `proto` and `files`. Serialized messages merge when they
// follow each other.
template <typename Message>
absl::Status ParseWithFiles(const Statement& row, int proto, int files, Message* message) {
  ASSAY_RETURN_IF_ERROR(ParseStored(row.Blob(proto), message));
  const std::string_view bytes = row.Blob(files);
  Message only_files;
  ASSAY_RETURN_IF_ERROR(ParseStored(bytes, &only_files));
  message->mutable_files()->Swap(only_files.mutable_files());
  return absl::OkStatus();
}

absl::Status UnpackDoubles(std::string_view bytes, google::protobuf::RepeatedField<double>* out) {
  if (bytes.size() % sizeof(double) != 0) return Corrupt("a list of samples");
  out->Resize(static_cast<int>(bytes.size() / sizeof(double)), 0);
  if (!bytes.empty()) std::memcpy(out->mutable_data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status ReadLogs(Connection& db, int64_t id, v1::Evaluation* evaluation) {
  if (!evaluation->has_outcome()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT build_log, output_log FROM logs WHERE evaluation_id = ?1"));
  select->BindInt(1, id);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
  if (found) AddLogs(select->Text(0), select->Text(1), evaluation->mutable_outcome());
  return absl::OkStatus();
}

absl::Status ReadSamples(Connection& db, int64_t id, v1::Evaluation* evaluation) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT workload_index, warm_ns, cold_ns, rest FROM samples"
                " WHERE evaluation_id = ?1 ORDER BY workload_index, runner_index"));
  select->BindInt(1, id);
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return absl::OkStatus();
    const int64_t workload = select->Int(0);
    if (workload < 0 || workload >= evaluation->outcome().workload_results_size()) {
      return Corrupt("samples of a workload");
    }
    v1::RunnerSamples* runner = evaluation->mutable_outcome()
                                    ->mutable_workload_results(static_cast<int>(workload))
                                    ->mutable_measurement()
                                    ->add_runners();
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(3), runner));
    ASSAY_RETURN_IF_ERROR(UnpackDoubles(select->Blob(1), runner->mutable_warm_ns()));
    ASSAY_RETURN_IF_ERROR(UnpackDoubles(select->Blob(2), runner->mutable_cold_ns()));
  }
}

// A filter as SQL: text with numbered parameters, and what to bind to them.
class Where {
 public:
  absl::Status Add(const EvaluationCondition& condition);
  void AddIdBelow(int64_t id) { AddNumber("id < ", id); }
  const std::string& sql() const { return sql_; }
  int parameter_count() const { return static_cast<int>(values_.size()); }
  void Bind(Statement& statement) const;

 private:
  struct Value {
    bool is_text = false;
    std::string text;
    int64_t number = 0;
  };
  void And() { sql_ += sql_.empty() ? " WHERE " : " AND "; }
  void AddNumber(std::string_view prefix, int64_t number) {
    And();
    values_.push_back({false, "", number});
    absl::StrAppend(&sql_, Av(prefix), "?", values_.size());
  }
  // Compares `left` with the parameter put into `right`, where '?' stands for it.
  void AddText(std::string_view left, bool equal, std::string_view before, std::string_view after,
               const std::string& text) {
    And();
    values_.push_back({true, text, 0});
    absl::StrAppend(&sql_, Av(left), equal ? " = " : " IS NOT ", Av(before), "?", values_.size(),
                    Av(after));
  }

  std::string sql_;
  std::vector<Value> values_;
};

absl::Status Where::Add(const EvaluationCondition& condition) {
  using Field = EvaluationCondition::Field;
  using Operator = EvaluationCondition::Operator;
  ASSAY_RETURN_IF_ERROR(CheckCondition(condition));
  const bool equal = condition.op == Operator::kEqual;
  std::string comparison = " = ";
  if (condition.op == Operator::kNotEqual) comparison = " <> ";
  if (condition.op == Operator::kLess) comparison = " < ";
  if (condition.op == Operator::kGreater) comparison = " > ";
  switch (condition.field) {
    case Field::kProblem:
      AddText("problem_id", equal, "(SELECT id FROM problems WHERE name = ", ")", condition.text);
      break;
    case Field::kCandidate:
      AddText("candidate_id", equal, "(SELECT id FROM candidates WHERE name = ", ")",
              condition.text);
      break;
    case Field::kDeviceClass:
      AddText("device_class", equal, "", "", condition.text);
      break;
    case Field::kLabel:
      AddText("label", equal, "", "", condition.text);
      break;
    case Field::kState:
      AddNumber("state" + comparison, condition.number);
      break;
    case Field::kVerdict:
      AddNumber("verdict" + comparison, condition.number);
      break;
    case Field::kLevel:
      AddNumber("level" + comparison, condition.number);
      break;
    case Field::kCreateTime:
      AddNumber("create_time" + comparison, condition.number);
      break;
  }
  return absl::OkStatus();
}

void Where::Bind(Statement& statement) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const int index = static_cast<int>(i) + 1;
    if (values_[i].is_text) {
      statement.BindText(index, values_[i].text);
    } else {
      statement.BindInt(index, values_[i].number);
    }
  }
}

}  // namespace

absl::Status ParseStored(std::string_view bytes, google::protobuf::Message* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return Corrupt(message->GetTypeName());
}

namespace {

// `column` holds a ProblemAudit, or NULL.
absl::Status AddAudit(const Statement& row, int column, v1::Problem* problem) {
  if (row.IsNull(column)) return absl::OkStatus();
  v1::ProblemAudit audit;
  ASSAY_RETURN_IF_ERROR(ParseStored(row.Blob(column), &audit));
  *problem->mutable_audit() = SummarizeAudit(audit);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Problem> ReadProblem(Connection& db, std::string_view name, int64_t version) {
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         db.Cached("SELECT v.proto, v.files, a.proto FROM problems AS p"
                                   " JOIN problem_versions AS v ON v.problem_id = p.id"
                                   " LEFT JOIN problem_audits AS a"
                                   " ON a.problem_id = p.id AND a.version = v.version"
                                   " WHERE p.name = ?1 AND (?2 = 0 OR v.version = ?2)"
                                   " ORDER BY v.version DESC LIMIT 1"));
  select->BindText(1, name);
  select->BindInt(2, version);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
  if (!found) {
    return NotFound("PROBLEM_NOT_FOUND", version == 0
                                             ? std::string(name)
                                             : absl::StrCat(Av(name), " version ", version));
  }
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(ParseWithFiles(*select, 0, 1, &problem));
  ASSAY_RETURN_IF_ERROR(AddAudit(*select, 2, &problem));
  return problem;
}

absl::StatusOr<Listed<v1::Problem>> ReadProblems(Connection& db, const Page& page) {
  std::string after;
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(after, DecodePageToken(kProblemPages, page.after));
  }
  const int size = ClampPageSize(page.size);
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT p.name, v.proto, a.proto FROM problems AS p"
                " JOIN problem_versions AS v ON v.problem_id = p.id AND v.version ="
                " (SELECT MAX(n.version) FROM problem_versions AS n WHERE n.problem_id = p.id)"
                " LEFT JOIN problem_audits AS a"
                " ON a.problem_id = p.id AND a.version = v.version"
                " WHERE p.name > ?1 ORDER BY p.name LIMIT ?2"));
  select->BindText(1, after);
  select->BindInt(2, size + 1);
  Listed<v1::Problem> listed;
  std::string last;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return listed;
    if (static_cast<int>(listed.items.size()) == size) {
      listed.next = EncodePageToken(kProblemPages, last);
      return listed;
    }
    last = std::string(select->Text(0));
    v1::Problem& problem = listed.items.emplace_back();
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(1), &problem));
    ASSAY_RETURN_IF_ERROR(AddAudit(*select, 2, &problem));
  }
}

absl::StatusOr<v1::Candidate> ReadCandidate(Connection& db, std::string_view name) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT c.proto, c.files, COALESCE(o.name, '') FROM candidates AS c"
                " LEFT JOIN candidates AS o ON o.id = c.clone_of"
                " WHERE c.name = ?1"));
  select->BindText(1, name);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
  if (!found) return NotFound("CANDIDATE_NOT_FOUND", name);
  v1::Candidate candidate;
  ASSAY_RETURN_IF_ERROR(ParseWithFiles(*select, 0, 1, &candidate));
  candidate.set_clone_of(std::string(select->Text(2)));
  return candidate;
}

absl::StatusOr<Listed<v1::Candidate>> ReadCandidates(Connection& db, std::string_view problem,
                                                     const Page& page) {
  int64_t below = std::numeric_limits<int64_t>::max();
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(below, DecodeNumericPageToken(kCandidatePages, page.after));
  }
  const int size = ClampPageSize(page.size);
  const std::string name = ProblemName(problem);
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      name.empty() ? db.Cached("SELECT c.id, c.proto, COALESCE(o.name, '') FROM candidates AS c"
                               " LEFT JOIN candidates AS o ON o.id = c.clone_of"
                               " WHERE c.id < ?2 ORDER BY c.id DESC LIMIT ?3")
                   : db.Cached("SELECT c.id, c.proto, COALESCE(o.name, '') FROM candidates AS c"
                               " LEFT JOIN candidates AS o ON o.id = c.clone_of"
                               " WHERE c.problem = ?1 AND c.id < ?2 ORDER BY c.id DESC LIMIT ?3"));
  select->BindText(1, name);
  select->BindInt(2, below);
  select->BindInt(3, size + 1);
  Listed<v1::Candidate> listed;
  int64_t last = 0;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return listed;
    if (static_cast<int>(listed.items.size()) == size) {
      listed.next = EncodePageToken(kCandidatePages, absl::StrCat(last));
      return listed;
    }
    last = select->Int(0);
    v1::Candidate& candidate = listed.items.emplace_back();
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(1), &candidate));
    candidate.set_clone_of(std::string(select->Text(2)));
  }
}

absl::StatusOr<RanOn> ReadRanOn(Connection& db, std::string_view name) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT COALESCE(ran_device_class, ''), problem_version FROM evaluations"
                " WHERE name = ?1"));
  select->BindText(1, name);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
  if (!found) return NotFound("EVALUATION_NOT_FOUND", name);
  return RanOn{std::string(select->Text(0)), static_cast<int>(select->Int(1))};
}

absl::StatusOr<v1::Evaluation> ReadEvaluation(Connection& db, std::string_view name,
                                              bool include_samples) {
  v1::Evaluation evaluation;
  int64_t id = 0;
  {
    ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                           db.Cached("SELECT id, proto FROM evaluations WHERE name = ?1"));
    select->BindText(1, name);
    ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
    if (!found) return NotFound("EVALUATION_NOT_FOUND", name);
    id = select->Int(0);
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(1), &evaluation));
  }
  // Logs and samples come with the outcome in one transaction and never change, so what an
  // evaluation with an outcome finds here belongs to it.
  ASSAY_RETURN_IF_ERROR(ReadLogs(db, id, &evaluation));
  if (include_samples) ASSAY_RETURN_IF_ERROR(ReadSamples(db, id, &evaluation));
  return evaluation;
}

absl::StatusOr<v1::Evaluation> ReadEvaluationById(Connection& db, int64_t id) {
  v1::Evaluation evaluation;
  {
    ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                           db.Cached("SELECT proto FROM evaluations WHERE id = ?1"));
    select->BindInt(1, id);
    ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
    if (!found) return Corrupt("a reference to an evaluation");
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(0), &evaluation));
  }
  ASSAY_RETURN_IF_ERROR(ReadLogs(db, id, &evaluation));
  return evaluation;
}

absl::StatusOr<Listed<v1::Evaluation>> ReadEvaluations(
    Connection& db, const std::vector<EvaluationCondition>& conditions, const Page& page) {
  Where where;
  for (const EvaluationCondition& condition : conditions) {
    ASSAY_RETURN_IF_ERROR(where.Add(condition));
  }
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const int64_t below,
                           DecodeNumericPageToken(kEvaluationPages, page.after));
    where.AddIdBelow(below);
  }
  const int size = ClampPageSize(page.size);
  // Not cached: callers choose the shape of the condition.
  ASSAY_ASSIGN_OR_RETURN(Statement select,
                         db.Prepare(absl::StrCat("SELECT id, proto FROM evaluations", where.sql(),
                                                 " ORDER BY id DESC LIMIT ", size + 1)));
  where.Bind(select);
  Listed<v1::Evaluation> listed;
  int64_t last = 0;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return listed;
    if (static_cast<int>(listed.items.size()) == size) {
      listed.next = EncodePageToken(kEvaluationPages, absl::StrCat(last));
      return listed;
    }
    last = select.Int(0);
    ASSAY_RETURN_IF_ERROR(ParseStored(select.Blob(1), &listed.items.emplace_back()));
  }
}

absl::StatusOr<v1::Evaluation> ReadByIdentity(Connection& db, std::string_view identity) {
  int64_t id = 0;
  {
    ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                           db.Cached("SELECT id FROM evaluations WHERE identity = ?1"
                                     " ORDER BY complete_time DESC, id DESC LIMIT 1"));
    select->BindText(1, identity);
    ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
    if (!found) return NotFound("EVALUATION_NOT_FOUND", absl::StrCat("identity ", Av(identity)));
    id = select->Int(0);
  }
  return ReadEvaluationById(db, id);
}

absl::StatusOr<std::vector<UnfinishedEvaluation>> ReadUnfinished(Connection& db) {
  // 1 QUEUED, 2 RUNNING. The inner query sorts ids alone.
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT e.fence, e.proto FROM"
                " (SELECT id FROM evaluations WHERE state IN (1, 2) ORDER BY id) AS u"
                " JOIN evaluations AS e ON e.id = u.id ORDER BY u.id"));
  std::vector<UnfinishedEvaluation> unfinished;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return unfinished;
    UnfinishedEvaluation& item = unfinished.emplace_back();
    item.fence = select->Int(0);
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(1), &item.evaluation));
  }
}

absl::StatusOr<std::vector<v1::Worker>> ReadWorkers(Connection& db) {
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         db.Cached("SELECT proto FROM workers ORDER BY name"));
  std::vector<v1::Worker> workers;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return workers;
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(0), &workers.emplace_back()));
  }
}

}  // namespace assay
