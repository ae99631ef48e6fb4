// The reads of the store. Every function runs on the connection that it is given and leaves no
// statement open. Errors: as of Store; DATA_LOSS with reason STORAGE_CORRUPT for a record that does
// not parse.
#ifndef ASSAY_STORE_SQLITE_READS_H_
#define ASSAY_STORE_SQLITE_READS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "store/sqlite/connection.h"
#include "store/store.h"

namespace assay {

absl::Status ParseStored(std::string_view bytes, google::protobuf::Message* message);

absl::StatusOr<v1::Problem> ReadProblem(Connection& db, std::string_view name, int64_t version);
absl::StatusOr<Listed<v1::Problem>> ReadProblems(Connection& db, const Page& page);
absl::StatusOr<v1::Candidate> ReadCandidate(Connection& db, std::string_view name);
absl::StatusOr<Listed<v1::Candidate>> ReadCandidates(Connection& db, std::string_view problem,
                                                     const Page& page);
absl::StatusOr<v1::Evaluation> ReadEvaluation(Connection& db, std::string_view name,
                                              bool include_samples);
// With logs, without samples. The id is one that exists.
absl::StatusOr<v1::Evaluation> ReadEvaluationById(Connection& db, int64_t id);
absl::StatusOr<Listed<v1::Evaluation>> ReadEvaluations(
    Connection& db, const std::vector<EvaluationCondition>& conditions, const Page& page);
absl::StatusOr<v1::Evaluation> ReadByIdentity(Connection& db, std::string_view identity);
absl::StatusOr<std::vector<UnfinishedEvaluation>> ReadUnfinished(Connection& db);
absl::StatusOr<std::vector<v1::Worker>> ReadWorkers(Connection& db);
absl::StatusOr<std::vector<StoredToken>> ReadTokens(Connection& db);
absl::StatusOr<Listed<v1::AccessEvent>> ReadAccessEvents(Connection& db, const Page& page);

// Inside a transaction, so that all its parts are of one moment.
absl::StatusOr<RanOn> ReadRanOn(Connection& db, std::string_view name);
absl::StatusOr<std::vector<v1::LeaderboardEntry>> ReadLeaderboard(Connection& db,
                                                                  const LeaderboardQuery& query);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_READS_H_
