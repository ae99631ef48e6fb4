// The reads of FakeStore.
#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
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

absl::StatusOr<std::vector<v1::LeaderboardEntry>> FakeStore::Leaderboard(
    std::string_view problem, std::string_view workload, std::string_view device_class,
    int entries_max) {
  absl::MutexLock lock(&data_mutex_);
  const std::string name = ProblemName(problem);
  // Problem, workload, class, time, order of creation.
  using Key = std::tuple<std::string, std::string, std::string, double, size_t>;
  std::vector<std::pair<Key, ResultRow>> ranked;
  for (size_t index = 0; index < records_.size(); ++index) {
    const Record& record = records_[index];
    const v1::Evaluation& evaluation = record.stored.evaluation;
    if (record.ran_device_class.empty() || evaluation.level() != v1::RANKED) continue;
    if (evaluation.outcome().verdict() != v1::PASSED || IsSuspect(evaluation.outcome())) continue;
    if (!name.empty() && evaluation.problem() != name) continue;
    const v1::Problem& newest = problems_[evaluation.problem()].rbegin()->second;
    if (record.problem_version != newest.version()) continue;
    if (newest.audit().state() != v1::ProblemAuditSummary::ADMITTED) continue;
    if (!device_class.empty() && record.ran_device_class != device_class) continue;
    for (ResultRow& row : ResultRows(evaluation.outcome())) {
      if (!(row.median_ns > 0) || (!workload.empty() && row.workload != workload)) continue;
      Key key(evaluation.problem(), row.workload, record.ran_device_class, row.median_ns, index);
      ranked.emplace_back(std::move(key), std::move(row));
    }
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<v1::LeaderboardEntry> entries;
  std::tuple<std::string, std::string, std::string> group;
  std::set<std::string> seen;
  for (const auto& [key, row] : ranked) {
    std::tuple<std::string, std::string, std::string> own(std::get<0>(key), std::get<1>(key),
                                                          std::get<2>(key));
    if (own != group) seen.clear();
    group = std::move(own);
    const Record& record = records_[std::get<4>(key)];
    const v1::Evaluation& evaluation = record.stored.evaluation;
    if (static_cast<int>(seen.size()) >= entries_max) continue;
    if (!seen.insert(evaluation.candidate()).second) continue;
    const v1::Candidate& candidate = candidates_[candidate_index_[evaluation.candidate()]];
    v1::LeaderboardEntry& entry = entries.emplace_back();
    entry.set_rank(static_cast<int>(seen.size()));
    entry.set_candidate(candidate.name());
    entry.set_candidate_label(evaluation.candidate_label().empty() ? candidate.spec().label()
                                                                   : evaluation.candidate_label());
    entry.set_author(candidate.spec().origin().author());
    entry.set_model(candidate.spec().origin().model());
    entry.set_evaluation(evaluation.name());
    entry.set_workload(row.workload);
    entry.set_device_class(record.ran_device_class);
    entry.set_median_ns(row.median_ns);
    entry.set_efficiency_ratio(row.efficiency_ratio);
    entry.set_bound(row.bound);
    entry.set_runner_spread_ratio(row.runner_spread_ratio);
    entry.set_baseline(row.baseline);
    entry.set_speedup_ratio(row.speedup_ratio);
    *entry.mutable_complete_time() = evaluation.timeline().complete_time();
    entry.set_problem_version(record.problem_version);
  }
  return entries;
}

absl::StatusOr<std::vector<v1::Worker>> FakeStore::ListWorkers() {
  absl::MutexLock lock(&data_mutex_);
  std::vector<v1::Worker> workers;
  for (const auto& [name, worker] : workers_) workers.push_back(worker);
  return workers;
}

absl::Status FakeStore::PublishCopy(const std::string& path) {
  absl::MutexLock lock(&data_mutex_);
  published_paths_.push_back(path);
  return absl::OkStatus();
}

}  // namespace assay
