// Problems, candidates and workers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/writes.h"

namespace assay {
namespace {

// Serializes `message` without its files, and the files alone; together they are the message again,
// since serialized messages merge when they are concatenated.
template <typename Message>
void SerializeApart(Message& message, std::string* proto, std::string* files) {
  Message only_files;
  only_files.mutable_files()->Swap(message.mutable_files());
  message.SerializeToString(proto);
  only_files.SerializeToString(files);
  message.mutable_files()->Swap(only_files.mutable_files());
}

class CreateProblem : public ResultOperation<v1::Problem> {
 public:
  CreateProblem(v1::Problem problem, StoreDone<v1::Problem> done)
      : ResultOperation(std::move(done)), problem_(std::move(problem)) {
    SerializeApart(problem_, &proto_, &files_);
  }
  size_t bytes() const override { return proto_.size() + files_.size(); }
  bool refusable() const override { return true; }

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::Problem>* result) override;

 private:
  absl::Status Insert(WriteContext& context, int64_t problem_id);

  v1::Problem problem_;
  std::string proto_;
  std::string files_;
};

absl::Status CreateProblem::ApplyTo(WriteContext& context, absl::StatusOr<v1::Problem>* result) {
  ASSAY_ASSIGN_OR_RETURN(const WriteContext::KnownProblem* known,
                         FindProblem(context, problem_.name()));
  if (known != nullptr) {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement select,
        context.db.Cached(
            "SELECT version FROM problem_versions WHERE problem_id = ?1 AND digest = ?2"));
    select->BindInt(1, known->id);
    select->BindText(2, problem_.digest());
    ASSAY_ASSIGN_OR_RETURN(const bool same, select->Step());
    if (same) {
      ASSAY_ASSIGN_OR_RETURN(*result, ReadProblem(context.db, problem_.name(), select->Int(0)));
      return absl::OkStatus();
    }
    if (problem_.version() <= known->newest_version) {
      *result = ErrorWithReason(
          absl::StatusCode::kAlreadyExists, "PROBLEM_VERSION_EXISTS",
          absl::StrCat(problem_.name(), " exists in version ", known->newest_version,
                       " with other content; raise `version` above it, got ", problem_.version()));
      return absl::OkStatus();
    }
  }
  ASSAY_RETURN_IF_ERROR(Insert(context, known == nullptr ? 0 : known->id));
  *result = problem_;
  return absl::OkStatus();
}

absl::Status CreateProblem::Insert(WriteContext& context, int64_t problem_id) {
  if (problem_id == 0) {
    ASSAY_ASSIGN_OR_RETURN(ScopedStatement insert,
                           context.db.Cached("INSERT INTO problems (name) VALUES (?1)"));
    insert->BindText(1, problem_.name());
    ASSAY_RETURN_IF_ERROR(insert->Run());
    problem_id = context.db.last_insert_id();
  }
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement insert,
      context.db.Cached("INSERT INTO problem_versions (problem_id, version, digest, create_time,"
                        " proto, files) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  insert->BindInt(1, problem_id);
  insert->BindInt(2, problem_.version());
  insert->BindText(3, problem_.digest());
  insert->BindInt(4, ToUnixNanos(problem_.create_time()));
  insert->BindBlob(5, proto_);
  insert->BindBlob(6, files_);
  ASSAY_RETURN_IF_ERROR(insert->Run());
  context.problems[problem_.name()] = {problem_id, problem_.version()};
  return absl::OkStatus();
}

class RecordProblemAudit : public ResultOperation<v1::Problem> {
 public:
  RecordProblemAudit(v1::ProblemAudit audit, absl::Time time, StoreDone<v1::Problem> done)
      : ResultOperation(std::move(done)), audit_(std::move(audit)) {
    *audit_.mutable_time() = ToTimestamp(time);
    proto_ = audit_.SerializeAsString();
  }
  size_t bytes() const override { return proto_.size(); }
  bool refusable() const override { return true; }

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::Problem>* result) override {
    // 0 would read the newest.
    *result = ReadProblem(context.db, audit_.problem(), std::max(audit_.problem_version(), 1));
    if (!result->ok()) {
      return absl::IsNotFound(result->status()) ? absl::OkStatus() : result->status();
    }
    const absl::Status current = CheckAuditDigest(audit_, (*result)->digest());
    if (!current.ok()) {
      *result = current;
      return absl::OkStatus();
    }
    *(*result)->mutable_audit() = SummarizeAudit(audit_);
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached("INSERT OR REPLACE INTO problem_audits"
                          " (problem_id, version, state, time, proto)"
                          " SELECT id, ?2, ?3, ?4, ?5 FROM problems WHERE name = ?1"));
    insert->BindText(1, audit_.problem());
    insert->BindInt(2, (*result)->version());
    insert->BindInt(3, (*result)->audit().state());
    insert->BindInt(4, ToUnixNanos(audit_.time()));
    insert->BindBlob(5, proto_);
    return insert->Run();
  }

 private:
  v1::ProblemAudit audit_;
  std::string proto_;
};

class CreateCandidate : public ResultOperation<v1::Candidate> {
 public:
  CreateCandidate(v1::Candidate candidate, std::string fingerprint, StoreDone<v1::Candidate> done)
      : ResultOperation(std::move(done)), row_(std::move(candidate), std::move(fingerprint)) {}
  size_t bytes() const override { return row_.proto.size() + row_.files.size(); }
  bool refusable() const override { return true; }

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::Candidate>* result) override {
    ASSAY_RETURN_IF_ERROR(InsertCandidate(context, row_).status());
    // The stored one may be older, and only the store knows whose clone it is.
    ASSAY_ASSIGN_OR_RETURN(*result, ReadCandidate(context.db, row_.name));
    return absl::OkStatus();
  }

 private:
  const CandidateRow row_;
};

class RecordWorker : public ResultOperation<bool> {
 public:
  RecordWorker(v1::Worker worker, StoreDone<bool> done)
      : ResultOperation(std::move(done)),
        worker_(std::move(worker)),
        proto_(worker_.SerializeAsString()) {}

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<bool>* result) override;

 private:
  absl::Status KeepCalibration(WriteContext& context, const v1::Device& device);

  const v1::Worker worker_;
  const std::string proto_;
};

absl::Status RecordWorker::ApplyTo(WriteContext& context, absl::StatusOr<bool>* result) {
  std::vector<std::string> classes;
  std::vector<std::string> models;
  for (const v1::Device& device : worker_.devices()) {
    classes.push_back(device.device_class());
    models.push_back(device.model());
  }
  const std::string device_class = absl::StrJoin(classes, ",");
  const std::string model = absl::StrJoin(models, ",");
  {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached("INSERT OR REPLACE INTO workers (name, state, device_class, model,"
                          " version, last_seen_time, completed_count,"
                          " infrastructure_failure_count, proto)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"));
    insert->BindText(1, worker_.name());
    insert->BindInt(2, worker_.state());
    insert->BindText(3, device_class);
    insert->BindText(4, model);
    insert->BindText(5, worker_.version());
    insert->BindInt(6, ToUnixNanos(worker_.last_seen_time()));
    insert->BindInt(7, worker_.completed_count());
    insert->BindInt(8, worker_.infrastructure_failure_count());
    insert->BindBlob(9, proto_);
    ASSAY_RETURN_IF_ERROR(insert->Run());
  }
  for (const v1::Device& device : worker_.devices()) {
    if (device.calibration().name().empty()) continue;
    ASSAY_RETURN_IF_ERROR(KeepCalibration(context, device));
  }
  *result = true;
  return absl::OkStatus();
}

absl::Status RecordWorker::KeepCalibration(WriteContext& context, const v1::Device& device) {
  const v1::Calibration& calibration = device.calibration();
  const std::string proto = calibration.SerializeAsString();
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement insert,
      context.db.Cached("INSERT INTO calibrations (name, device, device_class, measure_time, proto)"
                        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO NOTHING"));
  insert->BindText(1, calibration.name());
  insert->BindText(2, device.name());
  insert->BindText(3, device.device_class());
  insert->BindInt(4, ToUnixNanos(calibration.measure_time()));
  insert->BindBlob(5, proto);
  return insert->Run();
}

}  // namespace

CandidateRow::CandidateRow(v1::Candidate candidate, std::string code_fingerprint)
    : name(candidate.name()),
      problem(ProblemName(candidate.spec().problem())),
      fingerprint(std::move(code_fingerprint)),
      label(candidate.spec().label()),
      author(candidate.spec().origin().author()),
      model(candidate.spec().origin().model()),
      create_time(ToUnixNanos(candidate.create_time())) {
  candidate.clear_clone_of();
  SerializeApart(candidate, &proto, &files);
}

absl::StatusOr<int64_t> InsertCandidate(WriteContext& context, const CandidateRow& row) {
  {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached("INSERT INTO candidates (name, problem, label, author, model,"
                          " create_time, proto, files, fingerprint, clone_of)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                          " (SELECT MIN(id) FROM candidates WHERE problem = ?2"
                          " AND fingerprint = ?9 AND fingerprint <> ''))"
                          " ON CONFLICT (name) DO NOTHING"));
    insert->BindText(1, row.name);
    insert->BindText(2, row.problem);
    insert->BindText(3, row.label);
    insert->BindText(4, row.author);
    insert->BindText(5, row.model);
    insert->BindInt(6, row.create_time);
    insert->BindBlob(7, row.proto);
    insert->BindBlob(8, row.files);
    insert->BindText(9, row.fingerprint);
    ASSAY_RETURN_IF_ERROR(insert->Run());
  }
  if (context.db.changes() == 1) return context.db.last_insert_id();
  return FindCandidate(context, row.name);
}

absl::StatusOr<int64_t> FindCandidate(WriteContext& context, std::string_view name) {
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         context.db.Cached("SELECT id FROM candidates WHERE name = ?1"));
  select->BindText(1, name);
  ASSAY_ASSIGN_OR_RETURN(const bool known, select->Step());
  return known ? select->Int(0) : 0;
}

absl::StatusOr<const WriteContext::KnownProblem*> FindProblem(WriteContext& context,
                                                              const std::string& name) {
  const auto found = context.problems.find(name);
  if (found != context.problems.end()) return &found->second;
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         context.db.Cached("SELECT p.id, MAX(v.version) FROM problems AS p"
                                           " JOIN problem_versions AS v ON v.problem_id = p.id"
                                           " WHERE p.name = ?1 GROUP BY p.id"));
  select->BindText(1, name);
  ASSAY_ASSIGN_OR_RETURN(const bool known, select->Step());
  if (!known) return nullptr;
  return &(context.problems[name] = {select->Int(0), select->Int(1)});
}

std::unique_ptr<WriteOperation> NewCreateProblem(v1::Problem problem, StoreDone<v1::Problem> done) {
  return std::make_unique<CreateProblem>(std::move(problem), std::move(done));
}
std::unique_ptr<WriteOperation> NewRecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                                                      StoreDone<v1::Problem> done) {
  return std::make_unique<RecordProblemAudit>(std::move(audit), time, std::move(done));
}
std::unique_ptr<WriteOperation> NewCreateCandidate(v1::Candidate candidate, std::string fingerprint,
                                                   StoreDone<v1::Candidate> done) {
  return std::make_unique<CreateCandidate>(std::move(candidate), std::move(fingerprint),
                                           std::move(done));
}
std::unique_ptr<WriteOperation> NewRecordWorker(v1::Worker worker, StoreDone<bool> done) {
  return std::make_unique<RecordWorker>(std::move(worker), std::move(done));
}

}  // namespace assay
