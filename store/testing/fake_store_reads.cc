// The reads of FakeStore.
#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/confirmation.h"
#include "store/records.h"
#include "store/testing/fake_store.h"

namespace assay {

// --- Reads.

absl::StatusOr<v1::Problem> FakeStore::GetProblem(std::string_view name, int version) {
  absl::MutexLock lock(&data_mutex_);
  const auto found = problems_.find(std::string(name));
  if (found == problems_.end() || found->second.empty()) {
    return NotFound("PROBLEM_NOT_FOUND", name);
  }
  if (version == 0) return found->second.rbegin()->second;
  const auto exact = found->second.find(version);
  if (exact == found->second.end()) {
    return NotFound("PROBLEM_NOT_FOUND", absl::StrCat(Av(name), " version ", version));
  }
  return exact->second;
}

absl::StatusOr<Listed<v1::Problem>> FakeStore::ListProblems(const Page& page) {
  std::string after;
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(after, DecodePageToken(kProblemPages, page.after));
  }
  const size_t size = static_cast<size_t>(ClampPageSize(page.size));
  absl::MutexLock lock(&data_mutex_);
  Listed<v1::Problem> listed;
  for (auto it = problems_.upper_bound(after); it != problems_.end(); ++it) {
    if (it->second.empty()) continue;
    if (listed.items.size() == size) {
      listed.next = EncodePageToken(kProblemPages, listed.items.back().name());
      break;
    }
    listed.items.push_back(it->second.rbegin()->second);
    listed.items.back().clear_files();
  }
  return listed;
}

absl::StatusOr<v1::Candidate> FakeStore::GetCandidate(std::string_view name) {
  absl::MutexLock lock(&data_mutex_);
  const auto found = candidate_index_.find(name);
  if (found == candidate_index_.end()) return NotFound("CANDIDATE_NOT_FOUND", name);
  return candidates_[found->second];
}

absl::StatusOr<Listed<v1::Candidate>> FakeStore::ListCandidates(std::string_view problem,
                                                                const Page& page) {
  int64_t below = std::numeric_limits<int64_t>::max();
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(below, DecodeNumericPageToken(kCandidatePages, page.after));
  }
  const size_t size = static_cast<size_t>(ClampPageSize(page.size));
  const std::string name = ProblemName(problem);
  absl::MutexLock lock(&data_mutex_);
  Listed<v1::Candidate> listed;
  int64_t last = 0;
  // Keys count from 1.
  for (int64_t key = static_cast<int64_t>(candidates_.size()); key >= 1; --key) {
    const v1::Candidate& candidate = candidates_[static_cast<size_t>(key) - 1];
    if (key >= below || (!name.empty() && ProblemName(candidate.spec().problem()) != name)) {
      continue;
    }
    if (listed.items.size() == size) {
      listed.next = EncodePageToken(kCandidatePages, absl::StrCat(last));
      break;
    }
    last = key;
    listed.items.push_back(candidate);
    listed.items.back().clear_files();
  }
  return listed;
}

absl::StatusOr<v1::Evaluation> FakeStore::GetEvaluation(std::string_view name,
                                                        bool include_samples) {
  absl::MutexLock lock(&data_mutex_);
  const Record* record = Find(name);
  if (record == nullptr) return NotFound("EVALUATION_NOT_FOUND", name);
  return include_samples ? record->stored.evaluation : WithoutSamples(record->stored.evaluation);
}

bool FakeStore::Matches(const Record& record, const EvaluationCondition& condition) const {
  using Field = EvaluationCondition::Field;
  using Operator = EvaluationCondition::Operator;
  const v1::Evaluation& evaluation = record.stored.evaluation;
  const auto text = [&](const std::string& value) {
    return (value == condition.text) == (condition.op == Operator::kEqual);
  };
  const auto number = [&](int64_t value) {
    switch (condition.op) {
      case Operator::kEqual:
        return value == condition.number;
      case Operator::kNotEqual:
        return value != condition.number;
      case Operator::kLess:
        return value < condition.number;
      case Operator::kGreater:
        return value > condition.number;
    }
    return false;
  };
  switch (condition.field) {
    case Field::kProblem:
      return text(evaluation.problem());
    case Field::kCandidate:
      return text(evaluation.candidate());
    case Field::kDeviceClass:
      return text(evaluation.device_class());
    case Field::kLabel:
      return text(evaluation.candidate_label());
    case Field::kState:
      return number(evaluation.state());
    case Field::kVerdict:
      return number(evaluation.outcome().verdict());
    case Field::kLevel:
      return number(evaluation.level());
    case Field::kCreateTime:
      return number(ToUnixNanos(evaluation.create_time()));
  }
  return false;
}

absl::StatusOr<Listed<v1::Evaluation>> FakeStore::ListEvaluations(
    const std::vector<EvaluationCondition>& conditions, const Page& page) {
  for (const EvaluationCondition& condition : conditions) {
    ASSAY_RETURN_IF_ERROR(CheckCondition(condition));
  }
  int64_t below = std::numeric_limits<int64_t>::max();
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(below, DecodeNumericPageToken(kEvaluationPages, page.after));
  }
  const size_t size = static_cast<size_t>(ClampPageSize(page.size));
  absl::MutexLock lock(&data_mutex_);
  Listed<v1::Evaluation> listed;
  int64_t last = 0;
  for (int64_t key = static_cast<int64_t>(records_.size()); key >= 1; --key) {
    const Record& record = records_[static_cast<size_t>(key) - 1];
    const bool matches = key < below && std::all_of(conditions.begin(), conditions.end(),
                                                    [&](const auto& condition) {
                                                      return Matches(record, condition);
                                                    });
    if (!matches) continue;
    if (listed.items.size() == size) {
      listed.next = EncodePageToken(kEvaluationPages, absl::StrCat(last));
      break;
    }
    last = key;
    listed.items.push_back(WithoutSamples(record.stored.evaluation));
    StripLogs(&listed.items.back());
  }
  return listed;
}

absl::StatusOr<v1::Evaluation> FakeStore::FindByIdentity(std::string_view identity) {
  absl::MutexLock lock(&data_mutex_);
  const Record* newest = nullptr;
  const auto complete_time = [](const Record& record) {
    return ToUnixNanos(record.stored.evaluation.timeline().complete_time());
  };
  for (const Record& record : records_) {
    if (record.identity.empty() || record.identity != identity) continue;
    if (newest == nullptr || complete_time(record) >= complete_time(*newest)) newest = &record;
  }
  if (newest == nullptr) return NotFound("EVALUATION_NOT_FOUND", identity);
  return WithoutSamples(newest->stored.evaluation);
}

absl::StatusOr<std::vector<UnfinishedEvaluation>> FakeStore::ListUnfinished() {
  absl::MutexLock lock(&data_mutex_);
  std::vector<UnfinishedEvaluation> unfinished;
  for (const size_t index : unfinished_) {
    unfinished.push_back({records_[index].stored.evaluation, records_[index].stored.fence});
  }
  return unfinished;
}

absl::StatusOr<RanOn> FakeStore::GetRanOn(std::string_view evaluation) {
  absl::MutexLock lock(&data_mutex_);
  const Record* record = Find(evaluation);
  if (record == nullptr) return NotFound("EVALUATION_NOT_FOUND", evaluation);
  return RanOn{record->ran_device_class, record->problem_version};
}

std::map<FakeStore::BoardKey, std::vector<FakeStore::Ranked>> FakeStore::Boards() {
  std::map<BoardKey, std::vector<Ranked>> boards;
  for (size_t index = 0; index < records_.size(); ++index) {
    const Record& record = records_[index];
    const v1::Evaluation& evaluation = record.stored.evaluation;
    if (record.ran_device_class.empty() || !CountsForRanks(evaluation)) continue;
    if (evaluation.outcome().verdict() != v1::PASSED || IsSuspect(evaluation.outcome())) continue;
    const v1::Problem& newest = problems_[evaluation.problem()].rbegin()->second;
    if (record.problem_version != newest.version()) continue;
    const v1::Candidate& candidate = candidates_[candidate_index_[evaluation.candidate()]];
    for (ResultRow& row : ResultRows(evaluation.outcome())) {
      if (!(row.median_ns > 0) || record.contradicted.count(row.workload) != 0) continue;
      BoardKey key(evaluation.problem(), row.workload, record.ran_device_class,
                   evaluation.outcome().contract());
      Ranked ranked;
      ranked.index = index;
      ranked.code = candidate.clone_of().empty() ? candidate.name() : candidate.clone_of();
      ranked.settled = record.confirmed.count(row.workload) != 0;
      ranked.row = std::move(row);
      boards[std::move(key)].push_back(std::move(ranked));
    }
  }
  for (auto& [key, board] : boards) {
    std::sort(board.begin(), board.end(), [](const Ranked& a, const Ranked& b) {
      return std::tie(a.row.median_ns, a.index) < std::tie(b.row.median_ns, b.index);
    });
  }
  return boards;
}

v1::LeaderboardEntry FakeStore::MakeEntry(const Ranked& ranked, int rank, bool pending) {
  const Record& record = records_[ranked.index];
  const v1::Evaluation& evaluation = record.stored.evaluation;
  const v1::Candidate& candidate = candidates_[candidate_index_[evaluation.candidate()]];
  v1::LeaderboardEntry entry;
  entry.set_rank(rank);
  entry.set_candidate(candidate.name());
  entry.set_candidate_label(evaluation.candidate_label().empty() ? candidate.spec().label()
                                                                 : evaluation.candidate_label());
  entry.set_author(candidate.spec().origin().author());
  entry.set_model(candidate.spec().origin().model());
  entry.set_evaluation(evaluation.name());
  entry.set_workload(ranked.row.workload);
  entry.set_device_class(record.ran_device_class);
  entry.set_median_ns(ranked.row.median_ns);
  entry.set_efficiency_ratio(ranked.row.efficiency_ratio);
  entry.set_bound(ranked.row.bound);
  entry.set_runner_spread_ratio(ranked.row.runner_spread_ratio);
  entry.set_baseline(ranked.row.baseline);
  entry.set_speedup_ratio(ranked.row.speedup_ratio);
  *entry.mutable_complete_time() = evaluation.timeline().complete_time();
  entry.set_problem_version(record.problem_version);
  entry.set_contract(evaluation.outcome().contract());
  if (ranked.settled) entry.set_confirmed_by(ConfirmationName(evaluation.name()));
  entry.set_confirmation(pending          ? v1::LeaderboardEntry::PENDING
                         : ranked.settled ? v1::LeaderboardEntry::CONFIRMED
                                          : v1::LeaderboardEntry::NOT_NEEDED);
  return entry;
}

absl::StatusOr<std::vector<v1::LeaderboardEntry>> FakeStore::Leaderboard(
    const LeaderboardQuery& query) {
  absl::MutexLock lock(&data_mutex_);
  const auto matches = [](const std::string& wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  std::vector<v1::LeaderboardEntry> entries;
  for (const auto& [key, board] : Boards()) {
    const auto& [problem, workload, device_class, contract] = key;
    const v1::Problem& newest = problems_[problem].rbegin()->second;
    if (newest.audit().state() != v1::ProblemAuditSummary::ADMITTED) continue;
    if (!matches(ProblemName(query.problem), problem) || !matches(query.workload, workload) ||
        !matches(query.device_class, device_class) || !matches(query.contract, contract)) {
      continue;
    }
    const auto first = std::find_if(board.begin(), board.end(),
                                    [](const Ranked& ranked) { return ranked.settled; });
    const double first_ns =
        first == board.end() ? std::numeric_limits<double>::infinity() : first->row.median_ns;
    std::set<std::string> ranks;
    std::set<std::string> waits;
    std::vector<v1::LeaderboardEntry> ranked_entries;
    std::vector<v1::LeaderboardEntry> pending_entries;
    std::string first_code;
    for (const Ranked& ranked : board) {
      const bool pending = !ranked.settled && ranked.row.median_ns <= first_ns;
      if (!(pending ? waits : ranks).insert(ranked.code).second) continue;
      if (!pending && first_code.empty()) first_code = ranked.code;
      (pending ? pending_entries : ranked_entries)
          .push_back(MakeEntry(ranked, pending ? 0 : static_cast<int>(ranks.size()), pending));
    }
    std::vector<v1::LeaderboardEntry> own;
    if (!ranked_entries.empty()) own.push_back(ranked_entries.front());
    for (const v1::LeaderboardEntry& entry : pending_entries) {
      const v1::Candidate& candidate = candidates_[candidate_index_[entry.candidate()]];
      const std::string& code =
          candidate.clone_of().empty() ? candidate.name() : candidate.clone_of();
      if (code != first_code) own.push_back(entry);
    }
    for (size_t i = 1; i < ranked_entries.size(); ++i) own.push_back(ranked_entries[i]);
    if (static_cast<int>(own.size()) > query.entries_max) own.resize(query.entries_max);
    for (v1::LeaderboardEntry& entry : own) entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<v1::Worker>> FakeStore::ListWorkers() {
  absl::MutexLock lock(&data_mutex_);
  std::vector<v1::Worker> workers;
  for (const auto& [name, worker] : workers_) workers.push_back(worker);
  return workers;
}

absl::StatusOr<std::vector<StoredToken>> FakeStore::ListTokens() {
  absl::MutexLock lock(&data_mutex_);
  std::vector<StoredToken> tokens;
  for (const auto& [name, token] : tokens_) tokens.push_back(token);
  return tokens;
}

absl::StatusOr<Listed<v1::AccessEvent>> FakeStore::ListAccessEvents(const Page& page) {
  absl::MutexLock lock(&data_mutex_);
  int64_t number = static_cast<int64_t>(access_events_.size());
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(number, DecodeNumericPageToken(kAccessEventPages, page.after));
    number = std::min(number - 1, static_cast<int64_t>(access_events_.size()));
  }
  Listed<v1::AccessEvent> listed;
  for (; number > 0; --number) {
    if (static_cast<int>(listed.items.size()) == ClampPageSize(page.size)) {
      listed.next = EncodePageToken(kAccessEventPages, absl::StrCat(number + 1));
      break;
    }
    listed.items.push_back(access_events_[static_cast<size_t>(number - 1)]);
  }
  return listed;
}

absl::Status FakeStore::PublishCopy(const std::string& path) {
  absl::MutexLock lock(&data_mutex_);
  published_paths_.push_back(path);
  return absl::OkStatus();
}

}  // namespace assay
