#include "server/metrics.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "assay/v1/evaluation.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "server/access/access_control.h"
#include "server/dispatch/dispatcher.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Evaluation Finished(v1::State state, v1::Verdict verdict) {
  v1::Evaluation evaluation;
  evaluation.set_state(state);
  if (verdict != v1::VERDICT_UNSPECIFIED) evaluation.mutable_outcome()->set_verdict(verdict);
  return evaluation;
}

void Fill(Metrics* metrics) {
  metrics->CountRpc(Rpc::kCreateEvaluation, absl::StatusCode::kOk, absl::Milliseconds(4));
  metrics->CountRpc(Rpc::kCreateEvaluation, absl::StatusCode::kOk, absl::Minutes(4));
  metrics->CountRpc(Rpc::kGetWorker, absl::StatusCode::kNotFound, absl::Microseconds(4));
  metrics->CountTransition(Finished(v1::SUCCEEDED, v1::PASSED));
  metrics->CountTransition(Finished(v1::SUCCEEDED, v1::GAMED));
  metrics->CountTransition(Finished(v1::FAILED, v1::VERDICT_UNSPECIFIED));
  metrics->CountTransition(Finished(v1::RUNNING, v1::VERDICT_UNSPECIFIED));
  metrics->CountCreated(7, 2);
  metrics->CountCommit(100, absl::Milliseconds(4));
  metrics->CountCommit(1, absl::Milliseconds(6));
  DispatchCounters counters;
  counters.queued = 11;
  counters.oldest_queued_seconds = 2.5;
  counters.fenced_total = 3;
  metrics->SetSources({
      .dispatch = [counters] { return counters; },
      .reads_queued = [] { return size_t{4}; },
      .reads_rejected_total = [] { return int64_t{5}; },
      .writes_in_flight = [] { return size_t{6}; },
      .watchers = [] { return size_t{8}; },
      .problems = [] { return size_t{9}; },
      .access =
          [] {
            return AccessCounters{.refusals = {1, 0, 0, 0, 7, 0, 0}, .unrecorded_total = 2};
          },
  });
}

TEST(Metrics, SerializesWhatWasCounted) {
  Metrics metrics("1.2.3");
  Fill(&metrics);
  const std::string text = metrics.Serialize();
  for (const char* line : {
           "assay_server_build_info{version=\"1.2.3\"} 1\n",
           "assay_rpc_calls_total{method=\"CreateEvaluation\",code=\"OK\"} 2\n",
           "assay_rpc_calls_total{method=\"GetWorker\",code=\"NOT_FOUND\"} 1\n",
           "assay_store_commit_seconds_bucket{le=\"0.005\"} 1\n",
           "assay_store_commit_seconds_count 2\n",
           "assay_store_group_operations_bucket{le=\"64\"} 1\n",
           "assay_store_group_operations_bucket{le=\"128\"} 2\n",
           "assay_store_group_operations_sum 101\n",
           "assay_rpc_duration_seconds_count{method=\"CreateEvaluation\"} 2\n",
           "assay_rpc_duration_seconds_bucket{method=\"CreateEvaluation\",le=\"0.005\"} 1\n",
           "assay_rpc_duration_seconds_bucket{method=\"CreateEvaluation\",le=\"+Inf\"} 2\n",
           "assay_evaluations_finished_total{state=\"SUCCEEDED\"} 2\n",
           "assay_evaluations_finished_total{state=\"FAILED\"} 1\n",
           "assay_evaluations_completed_total{verdict=\"GAMED\"} 1\n",
           "assay_evaluations_created_total 7\n",
           "assay_evaluations_answered_from_store_total 2\n",
           "assay_dispatch_queue_evaluations 11\n",
           "assay_dispatch_oldest_queued_seconds 2.5\n",
           "assay_dispatch_fenced_calls_total 3\n",
           "assay_server_reads_queued_calls 4\n",
           "assay_server_watchers_streams 8\n",
           "assay_access_refusals_total{reason=\"SCOPE_MISSING\"} 7\n",
           "assay_access_refusals_total{reason=\"RATE_LIMITED\"} 0\n",
           "assay_access_unrecorded_events_total 2\n",
           "assay_rpc_calls_total{method=\"ListAccessEvents\",code=\"OK\"} 0\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("state=\"RUNNING\"")));
}

TEST(Metrics, EveryFamilyHasHelpAndThePrefix) {
  Metrics metrics("1");
  Fill(&metrics);
  const std::string text = metrics.Serialize();
  int types = 0;
  int helps = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    types += line.starts_with("# TYPE assay_");
    helps += line.starts_with("# HELP assay_") && line.ends_with(".");
    EXPECT_TRUE(line.starts_with("#") || line.starts_with("assay_")) << line;
    at = end + 1;
  }
  EXPECT_GT(types, 15);
  EXPECT_EQ(types, helps);
}

// `promtool check metrics` with files as standard input and output; the exit status.
int RunPromtool(const char* promtool, const std::string& input, const std::string& output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  char* const arguments[] = {const_cast<char*>(promtool), const_cast<char*>("check"),
                             const_cast<char*>("metrics"), nullptr};
  pid_t pid = 0;
  int status = -1;
  if (posix_spawn(&pid, promtool, &actions, nullptr, arguments, environ) == 0) {
    waitpid(pid, &status, 0);
  }
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

TEST(Metrics, PromtoolFindsNothing) {
  constexpr char kPromtool[] = "/usr/bin/promtool";
  if (access(kPromtool, X_OK) != 0) GTEST_SKIP() << kPromtool << " is not installed";
  Metrics metrics("1.2.3");
  Fill(&metrics);
  ASSERT_OK_AND_ASSIGN(const TemporaryDirectory folder, TemporaryDirectory::Create("metrics"));
  const std::string text_path = folder.path() + "/metrics.txt";
  const std::string log_path = folder.path() + "/log.txt";
  ASSERT_OK(WriteFileAtomically(text_path, metrics.Serialize()));
  const int rc = RunPromtool(kPromtool, text_path, log_path);
  ASSERT_OK_AND_ASSIGN(const std::string log, ReadFile(log_path, 1 << 20));
  EXPECT_EQ(rc, 0) << log;
  EXPECT_EQ(log, "");
}

TEST(Metrics, ServesOnAPortAndRefusesOneInUse) {
  Metrics metrics("1");
  ASSERT_OK_AND_ASSIGN(const int port, metrics.Expose("127.0.0.1:0"));
  EXPECT_GT(port, 0);
  Metrics other("1");
  EXPECT_THAT(other.Expose("127.0.0.1:" + std::to_string(port)), HasReason("PORT_IN_USE"));
  metrics.StopExposing();
}

}  // namespace
}  // namespace assay
