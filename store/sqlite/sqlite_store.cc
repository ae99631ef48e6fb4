#include "store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/publish.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/sqlite_store_internal.h"
#include "store/sqlite/writer.h"
#include "store/sqlite/writes.h"

namespace assay {
namespace {

class SqliteStore : public Store {
 public:
  SqliteStore(UniqueFd lock, std::string path, std::unique_ptr<Connection> writer,
              Writer::Options writer_options, std::unique_ptr<ReaderPool> readers,
              size_t access_events_max)
      : lock_(std::move(lock)),
        path_(std::move(path)),
        access_events_max_(static_cast<int64_t>(access_events_max)),
        writer_(std::move(writer), std::move(writer_options)),
        readers_(std::move(readers)) {}

  // Callbacks of the last writes may still read.
  ~SqliteStore() override { writer_.Stop(); }

  void CreateProblem(v1::Problem problem, StoreDone<v1::Problem> done) override {
    writer_.Enqueue(NewCreateProblem(std::move(problem), std::move(done)));
  }
  void RecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                          StoreDone<v1::Problem> done) override {
    writer_.Enqueue(NewRecordProblemAudit(std::move(audit), time, std::move(done)));
  }
  void CreateCandidate(v1::Candidate candidate, std::string fingerprint,
                       StoreDone<v1::Candidate> done) override {
    writer_.Enqueue(
        NewCreateCandidate(std::move(candidate), std::move(fingerprint), std::move(done)));
  }
  void CreateEvaluations(std::vector<NewEvaluation> evaluations,
                         StoreDone<std::vector<CreatedEvaluation>> done) override {
    writer_.Enqueue(NewCreateEvaluations(std::move(evaluations), std::move(done)));
  }
  void RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) override {
    writer_.Enqueue(NewRecordLease(std::move(grant), std::move(done)));
  }
  void RecordCompletion(Completion completion, StoreDone<CompletionRecord> done) override {
    writer_.Enqueue(NewRecordCompletion(std::move(completion), std::move(done)));
  }
  void RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done) override {
    writer_.Enqueue(NewRecordAttemptEnd(std::move(end), std::move(done)));
  }
  void RecordCancel(std::string evaluation, absl::Time time,
                    StoreDone<v1::Evaluation> done) override {
    writer_.Enqueue(NewRecordCancel(std::move(evaluation), time, std::move(done)));
  }
  void RecordWorker(v1::Worker worker, StoreDone<bool> done) override {
    writer_.Enqueue(NewRecordWorker(std::move(worker), std::move(done)));
  }
  void CreateToken(StoredToken token, NewAccessEvent event, StoreDone<v1::Token> done) override {
    writer_.Enqueue(
        NewCreateToken(std::move(token), std::move(event), access_events_max_, std::move(done)));
  }
  void RevokeToken(std::string name, absl::Time time, StoreDone<v1::Token> done) override {
    writer_.Enqueue(NewRevokeToken(std::move(name), time, std::move(done)));
  }
  void RecordAccessEvent(NewAccessEvent event, StoreDone<v1::AccessEvent> done) override {
    writer_.Enqueue(NewRecordAccessEvent(std::move(event), access_events_max_, std::move(done)));
  }

  absl::StatusOr<v1::Problem> GetProblem(std::string_view name, int version) override {
    return ReadProblem(*readers_->Acquire(), name, version);
  }
  absl::StatusOr<Listed<v1::Problem>> ListProblems(const Page& page) override {
    return ReadProblems(*readers_->Acquire(), page);
  }
  absl::StatusOr<v1::Candidate> GetCandidate(std::string_view name) override {
    return ReadCandidate(*readers_->Acquire(), name);
  }
  absl::StatusOr<Listed<v1::Candidate>> ListCandidates(std::string_view problem,
                                                       const Page& page) override {
    return ReadCandidates(*readers_->Acquire(), problem, page);
  }
  absl::StatusOr<v1::Evaluation> GetEvaluation(std::string_view name,
                                               bool include_samples) override {
    return ReadEvaluation(*readers_->Acquire(), name, include_samples);
  }
  absl::StatusOr<Listed<v1::Evaluation>> ListEvaluations(
      const std::vector<EvaluationCondition>& conditions, const Page& page) override {
    return ReadEvaluations(*readers_->Acquire(), conditions, page);
  }
  absl::StatusOr<v1::Evaluation> FindByIdentity(std::string_view identity) override {
    return ReadByIdentity(*readers_->Acquire(), identity);
  }
  absl::StatusOr<std::vector<UnfinishedEvaluation>> ListUnfinished() override {
    return ReadUnfinished(*readers_->Acquire());
  }
  absl::StatusOr<RanOn> GetRanOn(std::string_view evaluation) override {
    return ReadRanOn(*readers_->Acquire(), evaluation);
  }
  absl::StatusOr<std::vector<v1::LeaderboardEntry>> Leaderboard(
      const LeaderboardQuery& query) override {
    ReaderPool::Lease reader = readers_->Acquire();
    ASSAY_RETURN_IF_ERROR(reader->Execute("BEGIN"));
    auto entries = ReadLeaderboard(*reader, query);
    // Nothing was written, so the end of the transaction loses nothing.
    ASSAY_RETURN_IF_ERROR(reader->Execute("COMMIT"));
    return entries;
  }
  absl::StatusOr<std::vector<v1::Worker>> ListWorkers() override {
    return ReadWorkers(*readers_->Acquire());
  }
  absl::StatusOr<std::vector<StoredToken>> ListTokens() override {
    return ReadTokens(*readers_->Acquire());
  }
  absl::StatusOr<Listed<v1::AccessEvent>> ListAccessEvents(const Page& page) override {
    return ReadAccessEvents(*readers_->Acquire(), page);
  }

  absl::Status PublishCopy(const std::string& path) override {
    absl::MutexLock lock(&publish_mutex_);
    return PublishDatabase(path_, path);
  }

  void Shutdown() override { writer_.Shutdown(); }

 private:
  // Destroyed in the reverse order: the writer closes last, checkpoints, and only then the folder
  // is free for another process.
  const UniqueFd lock_;
  const std::string path_;
  const int64_t access_events_max_;
  Writer writer_;
  const std::unique_ptr<ReaderPool> readers_;
  absl::Mutex publish_mutex_;  // serializes PublishCopy: two copies would share a temporary file
};

absl::StatusOr<UniqueFd> LockFolder(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/assay.lock");
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("cannot open ", path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoError(errno, absl::StrCat("cannot lock ", path));
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "DATA_FOLDER_IN_USE",
                         absl::StrCat("another server uses the data folder ", directory,
                                      "; stop it, or choose another folder"));
}

}  // namespace

std::string DatabasePath(const std::string& directory) {
  return absl::StrCat(directory, "/assay.db");
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStoreWith(const SqliteStoreOptions& options,
                                                           Writer::Options writer_options) {
  ASSAY_RETURN_IF_ERROR(CreateDirectories(options.directory));
  ASSAY_ASSIGN_OR_RETURN(UniqueFd lock, LockFolder(options.directory));
  const std::string path = DatabasePath(options.directory);
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Connection> writer,
                         Connection::Open(path, Connection::Role::kWriter));
  absl::Status status = Migrate(*writer, Migrations());
  if (status.ok()) status = WriteEnumNames(*writer);
  if (!status.ok()) return Annotate(status, path);
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<ReaderPool> readers,
                         ReaderPool::Open(path, options.reader_count));
  Log(LogLevel::kInfo, "store_open",
      {{"path", path},
       {"schema", absl::StrCat(Migrations().back().version)},
       {"sqlite", sqlite3_libversion()},
       {"wal_reset_bug", HasWalResetBug(sqlite3_libversion_number())
                             ? "avoided: one connection writes and checkpoints"
                             : "fixed"}});
  return std::make_unique<SqliteStore>(std::move(lock), path, std::move(writer),
                                       std::move(writer_options), std::move(readers),
                                       options.access_events_max);
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteStoreOptions& options) {
  Writer::Options writer_options;
  writer_options.reserve_wal = true;
  writer_options.on_commit = options.on_commit;
  return OpenSqliteStoreWith(options, std::move(writer_options));
}

}  // namespace assay
