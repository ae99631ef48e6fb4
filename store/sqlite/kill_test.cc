// A writer process is killed with SIGKILL at random moments; whatever it had acknowledged is there
// afterwards, whole, and the database is sound.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_store_internal.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

using ::assay::testing::CreateProblem;
using ::assay::testing::Lease;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeGrant;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;

// Writes without end. "NAME\n" goes to `out` when the creation of NAME is acknowledged, "NAME
// done\n" when its completion is. Returns an exit code only when something fails.
int RunWriter(const std::string& data, int round, int out) {
  Writer::Options options;
  options.checkpoint_frames = 50;  // many kills fall into a checkpoint
  auto store = OpenSqliteStoreWith({.directory = data, .reader_count = 1}, options);
  if (!store.ok()) {
    std::cerr << store.status() << "\n";
    return 1;
  }
  for (int i = 0;; ++i) {
    constexpr int kInFlight = 8;
    std::vector<std::string> ids;
    absl::Mutex mutex;
    int left = kInFlight;
    int failures = 0;
    for (int k = 0; k < kInFlight; ++k) {
      const std::string id = absl::StrCat("r", round, "-", i, "-", k);
      ids.push_back(id);
      std::vector<NewEvaluation> pair;
      pair.push_back(MakeEvaluation(id, id));
      pair.push_back(MakeEvaluation(id + "b", id));
      (*store)->CreateEvaluations(std::move(pair), [&, id](auto created) {
        const bool written = created.ok() && WriteAll(out, id + "\n").ok();
        absl::MutexLock lock(&mutex);
        if (!written) ++failures;
        --left;
      });
    }
    mutex.LockWhen(absl::Condition(
        +[](int* count) { return *count == 0; }, &left));
    mutex.Unlock();
    if (failures != 0) return 1;
    const std::string& id = ids.front();
    if (!Lease(**store, MakeGrant(id, 1)).ok()) return 1;
    // Nothing is ever confirmed, so each of these calls for a second run.
    Completion completion = MakeCompletion(id, 1, MakeOutcome("small", 100));
    completion.may_confirm = true;
    const auto record = assay::testing::Complete(**store, std::move(completion));
    if (!record.ok() || !record->confirmation.has_value() || !WriteAll(out, id + " done\n").ok())
      return 1;
  }
}

struct Child {
  pid_t pid = -1;
  UniqueFd acknowledgements;
};

Child Start(const std::string& data, int round) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  Child child;
  child.pid = fork();
  if (child.pid == 0) _exit(RunWriter(data, round, ends[1]));
  close(ends[1]);
  child.acknowledgements = UniqueFd(ends[0]);
  return child;
}

// Reads `lines` acknowledgements, kills after a further random wait, and reads the rest.
std::string KillAfter(Child& child, size_t lines, int wait_us) {
  std::string text;
  char buffer[4096];
  while (static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) < lines) {
    const ssize_t got = read(child.acknowledgements.get(), buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  usleep(static_cast<useconds_t>(wait_us));
  kill(child.pid, SIGKILL);
  int status = 0;
  waitpid(child.pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself, status " << status;
  text += *ReadToEnd(child.acknowledgements.get(), 1 << 24);
  return text;
}

void ExpectAcknowledged(Store& store, const std::set<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const auto first = store.GetEvaluation("evaluations/" + words[0], true);
    ASSERT_OK(first) << line << " was acknowledged";
    EXPECT_OK(store.GetEvaluation("evaluations/" + words[0] + "b", false));
    EXPECT_OK(store.GetCandidate(first->candidate()));
    if (words.size() == 1) continue;
    EXPECT_EQ(first->state(), v1::SUCCEEDED) << line;
    EXPECT_EQ(first->outcome().workload_results(0).measurement().runners_size(), 2) << line;
  }
}

TEST(KillTest, NothingAcknowledgedIsLost) {
  const char* given = std::getenv("ASSAY_KILL_SEED");
  uint64_t seed = SecureRandom64() % 1'000'000;
  if (given != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(given, &seed));
  }
  std::cout << "seed " << seed << " (ASSAY_KILL_SEED)\n";
  Random random(seed);

  const TemporaryDirectory directory = *TemporaryDirectory::Create("assay-kill");
  const std::string data = directory.path() + "/data";
  {
    auto store = OpenSqliteStore({.directory = data});
    ASSERT_OK(store);
    ASSERT_OK(CreateProblem(**store, MakeProblem("gelu")));
  }
  constexpr int kKills = 40;
  std::set<std::string> acknowledged;
  for (int round = 0; round < kKills; ++round) {
    Child child = Start(data, round);
    ASSERT_GT(child.pid, 0);
    const std::string text =
        KillAfter(child, random.Below(60), static_cast<int>(random.Below(15'000)));
    for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      acknowledged.insert(std::string(line));
    }
    // Recovery happens in an open store, and the next writer goes on from there.
    if (round % 8 != 7 && round != kKills - 1) continue;
    {
      auto store = OpenSqliteStore({.directory = data});
      ASSERT_OK(store);
      ExpectAcknowledged(**store, acknowledged);
    }
    auto db = Connection::Open(DatabasePath(data), Connection::Role::kReader);
    ASSERT_OK(db);
    ASSERT_OK_AND_ASSIGN(Statement check, (*db)->Prepare("PRAGMA integrity_check"));
    ASSERT_TRUE(*check.Step());
    EXPECT_EQ(check.Text(0), "ok");
    EXPECT_EQ(*(*db)->QueryInt("SELECT COUNT(*) FROM pragma_foreign_key_check()"), 0);
    // No half of a pair, no outcome without its samples, results and second run.
    EXPECT_EQ(*(*db)->QueryInt("SELECT COUNT(*) FROM evaluations"
                               " WHERE name NOT LIKE '%-confirmation'") %
                  2,
              0);
    EXPECT_EQ(*(*db)->QueryInt("SELECT COUNT(*) FROM evaluations AS e WHERE e.state = 3"),
              *(*db)->QueryInt("SELECT COUNT(*) FROM evaluations AS e JOIN evaluations AS s"
                               " ON s.name = e.name || '-confirmation'"
                               " WHERE e.state = 3 AND s.state = 1"));
    EXPECT_EQ(*(*db)->QueryInt("SELECT COUNT(*) FROM evaluations WHERE state = 3"),
              *(*db)->QueryInt("SELECT COUNT(*) FROM results"));
    EXPECT_EQ(2 * *(*db)->QueryInt("SELECT COUNT(*) FROM results"),
              *(*db)->QueryInt("SELECT COUNT(*) FROM samples"));
  }
  std::cout << acknowledged.size() << " acknowledgements over " << kKills << " kills\n";
  EXPECT_GT(acknowledged.size(), 200u) << "the writers hardly ran";
}

}  // namespace
}  // namespace assay
