// Leaderboards walk the index `results_ranked`: group by group (workload, device class), fastest
// first, until enough different candidates are seen. The work does not grow with the results that
// nobody sees.
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/records.h"
#include "store/sqlite/reads.h"

namespace assay {
namespace {

struct Group {
  std::string workload;
  std::string device_class;
};

struct NewestProblem {
  int64_t id = 0;
  int64_t version = 0;
};

absl::StatusOr<std::vector<NewestProblem>> FindProblems(Connection& db, std::string_view name) {
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         db.Cached("SELECT n.id, n.version FROM"
                                   " (SELECT p.id AS id, p.name AS name, MAX(v.version) AS version"
                                   " FROM problems AS p"
                                   " JOIN problem_versions AS v ON v.problem_id = p.id"
                                   " WHERE ?1 = '' OR p.name = ?1 GROUP BY p.id) AS n"
                                   " JOIN problem_audits AS a ON a.problem_id = n.id"
                                   " AND a.version = n.version AND a.state = 1 ORDER BY n.name"));
  select->BindText(1, name);
  std::vector<NewestProblem> problems;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return problems;
    problems.push_back({select->Int(0), select->Int(1)});
  }
}

// The group after `group` in order. False: none.
absl::StatusOr<bool> NextGroup(Connection& db, const NewestProblem& problem, Group* group) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT workload, device_class FROM results INDEXED BY results_ranked"
                " WHERE problem_id = ?1 AND problem_version = ?2"
                " AND (workload, device_class) > (?3, ?4)"
                " AND level = 3 AND verdict = 1 AND suspect = 0 AND median_ns > 0"
                " ORDER BY workload, device_class LIMIT 1"));
  const Group before = *group;
  select->BindInt(1, problem.id);
  select->BindInt(2, problem.version);
  select->BindText(3, before.workload);
  select->BindText(4, before.device_class);
  ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
  if (!row) return false;
  *group = {std::string(select->Text(0)), std::string(select->Text(1))};
  return true;
}

void FillEntry(const Statement& row, const NewestProblem& problem, const Group& group,
               v1::LeaderboardEntry* entry) {
  entry->set_workload(group.workload);
  entry->set_device_class(group.device_class);
  entry->set_problem_version(static_cast<int>(problem.version));
  entry->set_median_ns(row.Double(1));
  entry->set_efficiency_ratio(row.Double(2));
  entry->set_bound(std::string(row.Text(3)));
  entry->set_runner_spread_ratio(row.Double(4));
  entry->set_baseline(std::string(row.Text(5)));
  entry->set_speedup_ratio(row.Double(6));
  *entry->mutable_complete_time() = ToTimestamp(absl::FromUnixNanos(row.Int(7)));
  entry->set_candidate(std::string(row.Text(8)));
  entry->set_candidate_label(std::string(row.Text(9)));
  entry->set_author(std::string(row.Text(10)));
  entry->set_model(std::string(row.Text(11)));
  entry->set_evaluation(std::string(row.Text(12)));
}

absl::Status ReadGroup(Connection& db, const NewestProblem& problem, const Group& group,
                       int entries_max, std::vector<v1::LeaderboardEntry>* entries) {
  // CROSS JOIN keeps the ranked results the outer loop.
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT r.candidate_id, r.median_ns, r.efficiency_ratio, r.bound,"
                " r.runner_spread_ratio, r.baseline, r.speedup_ratio, r.complete_time, c.name,"
                " CASE e.label WHEN '' THEN c.label ELSE e.label END, c.author, c.model, e.name"
                " FROM results AS r INDEXED BY results_ranked"
                " CROSS JOIN candidates AS c ON c.id = r.candidate_id"
                " CROSS JOIN evaluations AS e ON e.id = r.evaluation_id"
                " WHERE r.problem_id = ?1 AND r.problem_version = ?2 AND r.workload = ?3"
                " AND r.device_class = ?4 AND r.level = 3 AND r.verdict = 1 AND r.suspect = 0"
                " AND r.median_ns > 0 ORDER BY r.median_ns, r.evaluation_id"));
  select->BindInt(1, problem.id);
  select->BindInt(2, problem.version);
  select->BindText(3, group.workload);
  select->BindText(4, group.device_class);
  std::unordered_set<int64_t> seen;
  while (static_cast<int>(seen.size()) < entries_max) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) break;
    if (!seen.insert(select->Int(0)).second) continue;
    v1::LeaderboardEntry& entry = entries->emplace_back();
    entry.set_rank(static_cast<int>(seen.size()));
    FillEntry(*select, problem, group, &entry);
  }
  return absl::OkStatus();
}

absl::Status ReadProblemBoard(Connection& db, const NewestProblem& problem,
                              std::string_view workload, std::string_view device_class,
                              int entries_max, std::vector<v1::LeaderboardEntry>* entries) {
  if (!workload.empty() && !device_class.empty()) {
    return ReadGroup(db, problem, {std::string(workload), std::string(device_class)}, entries_max,
                     entries);
  }
  Group group{std::string(workload), ""};
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, NextGroup(db, problem, &group));
    if (!found || (!workload.empty() && group.workload != workload)) return absl::OkStatus();
    if (!device_class.empty() && group.device_class != device_class) continue;
    ASSAY_RETURN_IF_ERROR(ReadGroup(db, problem, group, entries_max, entries));
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::LeaderboardEntry>> ReadLeaderboard(Connection& db,
                                                                  std::string_view problem,
                                                                  std::string_view workload,
                                                                  std::string_view device_class,
                                                                  int entries_max) {
  const std::string name = ProblemName(problem);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<NewestProblem> problems, FindProblems(db, name));
  std::vector<v1::LeaderboardEntry> entries;
  for (const NewestProblem& found : problems) {
    ASSAY_RETURN_IF_ERROR(
        ReadProblemBoard(db, found, workload, device_class, entries_max, &entries));
  }
  return entries;
}

}  // namespace assay
