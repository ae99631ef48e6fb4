// Leaderboards walk the index `results_ranked`: group by group (workload, device class, contract),
// fastest first, until enough different codes are seen. The work does not grow with the results
// that nobody sees. Where the first that is settled stands, `results_settled` tells.
#include <limits>
#include <optional>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/confirmation.h"
#include "store/records.h"
#include "store/sqlite/reads.h"

namespace assay {
namespace {

struct Group {
  std::string workload;
  std::string device_class;
  std::string contract;
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
                                   " AND a.version = n.version"
                                   // ADMITTED
                                   " WHERE a.state = 1 ORDER BY n.name"));
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
      db.Cached("SELECT workload, device_class, contract FROM results INDEXED BY results_ranked"
                " WHERE problem_id = ?1 AND problem_version = ?2"
                " AND (workload, device_class, contract) > (?3, ?4, ?5)"
                " AND level = 3 AND verdict = 1 AND suspect = 0 AND ranks = 1 AND median_ns > 0"
                " ORDER BY workload, device_class, contract LIMIT 1"));
  const Group before = *group;
  select->BindInt(1, problem.id);
  select->BindInt(2, problem.version);
  select->BindText(3, before.workload);
  select->BindText(4, before.device_class);
  select->BindText(5, before.contract);
  ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
  if (!row) return false;
  *group = {std::string(select->Text(0)), std::string(select->Text(1)),
            std::string(select->Text(2))};
  return true;
}

void BindGroup(const NewestProblem& problem, const Group& group, Statement* select) {
  select->BindInt(1, problem.id);
  select->BindInt(2, problem.version);
  select->BindText(3, group.workload);
  select->BindText(4, group.device_class);
  select->BindText(5, group.contract);
}

// The time of the fastest that is settled; nothing where none is.
absl::StatusOr<std::optional<double>> FirstSettled(Connection& db, const NewestProblem& problem,
                                                   const Group& group) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT median_ns FROM results INDEXED BY results_settled"
                " WHERE problem_id = ?1 AND problem_version = ?2 AND workload = ?3"
                " AND device_class = ?4 AND contract = ?5 AND level = 3 AND verdict = 1"
                " AND suspect = 0 AND ranks = 1 AND median_ns > 0 AND confirmation > 0"
                " ORDER BY median_ns LIMIT 1"));
  BindGroup(problem, group, &*select);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
  if (!found) return std::nullopt;
  return select->Double(0);
}

void FillEntry(const Statement& row, const NewestProblem& problem, const Group& group,
               v1::LeaderboardEntry* entry) {
  entry->set_workload(group.workload);
  entry->set_device_class(group.device_class);
  entry->set_contract(group.contract);
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
  entry->set_confirmed_by(std::string(row.Text(14)));
}

// A part of a board: what is pending, or what ranks. The fastest of each code.
struct Part {
  std::vector<v1::LeaderboardEntry> entries;
  std::vector<int64_t> codes;  // of the entries
};

// Of the results from `low_ns` to `high_ns`.
absl::StatusOr<Part> ReadPart(Connection& db, const NewestProblem& problem, const Group& group,
                              bool pending, double low_ns, double high_ns, int entries_max) {
  // CROSS JOIN keeps the ranked results the outer loop.
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      db.Cached("SELECT COALESCE(c.clone_of, c.id), r.median_ns, r.efficiency_ratio, r.bound,"
                " r.runner_spread_ratio, r.baseline, r.speedup_ratio, r.complete_time, c.name,"
                " CASE e.label WHEN '' THEN c.label ELSE e.label END, c.author, c.model, e.name,"
                " r.confirmation, r.confirmed_by"
                " FROM results AS r INDEXED BY results_ranked"
                " CROSS JOIN candidates AS c ON c.id = r.candidate_id"
                " CROSS JOIN evaluations AS e ON e.id = r.evaluation_id"
                " WHERE r.problem_id = ?1 AND r.problem_version = ?2 AND r.workload = ?3"
                " AND r.device_class = ?4 AND r.contract = ?5 AND r.level = 3 AND r.verdict = 1"
                " AND r.suspect = 0 AND r.ranks = 1 AND r.median_ns > 0"
                " AND r.median_ns >= ?6 AND r.median_ns <= ?7"
                " ORDER BY r.median_ns, r.evaluation_id"));
  BindGroup(problem, group, &*select);
  select->BindDouble(6, low_ns);
  select->BindDouble(7, high_ns);
  Part part;
  std::unordered_set<int64_t> seen;
  while (static_cast<int>(seen.size()) < entries_max) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) break;
    const auto standing = static_cast<Standing>(select->Int(13));
    // As fast as the first and not settled: that waits too.
    const bool waits = standing == Standing::kOpen && (pending || !(select->Double(1) > low_ns));
    if (waits != pending || !seen.insert(select->Int(0)).second) continue;
    part.codes.push_back(select->Int(0));
    v1::LeaderboardEntry& entry = part.entries.emplace_back();
    FillEntry(*select, problem, group, &entry);
    entry.set_rank(pending ? 0 : static_cast<int>(seen.size()));
    entry.set_confirmation(pending                            ? v1::LeaderboardEntry::PENDING
                           : standing == Standing::kConfirmed ? v1::LeaderboardEntry::CONFIRMED
                                                              : v1::LeaderboardEntry::NOT_NEEDED);
  }
  return part;
}

absl::Status ReadGroup(Connection& db, const NewestProblem& problem, const Group& group,
                       int entries_max, std::vector<v1::LeaderboardEntry>* entries) {
  constexpr double kEver = std::numeric_limits<double>::max();
  ASSAY_ASSIGN_OR_RETURN(const std::optional<double> first_ns, FirstSettled(db, problem, group));
  Part ranked;
  if (first_ns.has_value()) {
    ASSAY_ASSIGN_OR_RETURN(
        ranked, ReadPart(db, problem, group, /*pending=*/false, *first_ns, kEver, entries_max));
  }
  ASSAY_ASSIGN_OR_RETURN(Part pending, ReadPart(db, problem, group, /*pending=*/true, 0,
                                                first_ns.value_or(kEver), entries_max));
  int left = entries_max;
  const auto add = [&](v1::LeaderboardEntry& entry) {
    if (left-- > 0) entries->push_back(std::move(entry));
  };
  if (!ranked.entries.empty()) add(ranked.entries.front());
  for (size_t i = 0; i < pending.entries.size(); ++i) {
    if (!ranked.codes.empty() && pending.codes[i] == ranked.codes.front()) continue;
    add(pending.entries[i]);
  }
  for (size_t i = 1; i < ranked.entries.size(); ++i) add(ranked.entries[i]);
  return absl::OkStatus();
}

absl::Status ReadProblemBoard(Connection& db, const NewestProblem& problem,
                              const LeaderboardQuery& query,
                              std::vector<v1::LeaderboardEntry>* entries) {
  const auto matches = [](const std::string& wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  Group group{query.workload, query.device_class, query.contract};
  if (!query.workload.empty() && !query.device_class.empty() && !query.contract.empty()) {
    return ReadGroup(db, problem, group, query.entries_max, entries);
  }
  group = {query.workload, "", ""};
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, NextGroup(db, problem, &group));
    if (!found || !matches(query.workload, group.workload)) return absl::OkStatus();
    if (!matches(query.device_class, group.device_class)) continue;
    if (!matches(query.contract, group.contract)) continue;
    ASSAY_RETURN_IF_ERROR(ReadGroup(db, problem, group, query.entries_max, entries));
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::LeaderboardEntry>> ReadLeaderboard(Connection& db,
                                                                  const LeaderboardQuery& query) {
  const std::string name = ProblemName(query.problem);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<NewestProblem> problems, FindProblems(db, name));
  std::vector<v1::LeaderboardEntry> entries;
  for (const NewestProblem& found : problems) {
    ASSAY_RETURN_IF_ERROR(ReadProblemBoard(db, found, query, &entries));
  }
  return entries;
}

}  // namespace assay
