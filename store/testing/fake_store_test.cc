#include "store/testing/fake_store.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeProblem;

void Create(Store& store, std::string_view id, std::function<void(absl::Status)> done) {
  std::vector<NewEvaluation> evaluations;
  evaluations.push_back(MakeEvaluation(id));
  store.CreateEvaluations(
      std::move(evaluations),
      [done](absl::StatusOr<std::vector<CreatedEvaluation>> created) { done(created.status()); });
}

TEST(FakeStoreTest, BlockedWritesWaitAndReadsDoNot) {
  FakeStore store;
  ASSERT_OK(CreateProblem(store, MakeProblem("gelu")));
  store.BlockWrites();
  absl::BlockingCounter left(2);
  std::atomic<int> answered = 0;
  for (const char* id : {"e1", "e2"}) {
    Create(store, id, [&](absl::Status status) {
      EXPECT_OK(status);
      ++answered;
      left.DecrementCount();
    });
  }
  store.WaitForPending(2);
  EXPECT_EQ(store.pending_count(), 2u);
  EXPECT_EQ(answered, 0);
  EXPECT_THAT(store.GetEvaluation("evaluations/e1", false), HasReason("EVALUATION_NOT_FOUND"));
  store.ReleaseWrites();
  left.Wait();
  EXPECT_OK(store.GetEvaluation("evaluations/e1", false));
}

TEST(FakeStoreTest, AFailedWriteChangesNothing) {
  FakeStore store;
  ASSERT_OK(CreateProblem(store, MakeProblem("gelu")));
  store.FailNextWrite(
      ErrorWithReason(absl::StatusCode::kResourceExhausted, "STORAGE_FULL", "the disk is full"));
  EXPECT_THAT(CreateOne(store, MakeEvaluation("e1")), HasReason("STORAGE_FULL"));
  EXPECT_THAT(store.GetEvaluation("evaluations/e1", false), HasReason("EVALUATION_NOT_FOUND"));
  EXPECT_OK(CreateOne(store, MakeEvaluation("e1")));
}

TEST(FakeStoreTest, ManualModeAppliesOnDemandOnTheCallersThread) {
  FakeStore store(FakeStore::Mode::kManual);
  store.CreateProblem(MakeProblem("gelu"), [](auto) {});
  EXPECT_TRUE(store.RunOne());
  EXPECT_FALSE(store.RunOne());
  std::vector<std::string> log;
  Create(store, "e1", [&](absl::Status status) {
    log.push_back(absl::StrCat("e1 ", status.ok()));
    // A write made by a callback is run too.
    Create(store, "e2",
           [&](absl::Status inner) { log.push_back(absl::StrCat("e2 ", inner.ok())); });
  });
  EXPECT_TRUE(log.empty());
  store.RunPending();
  EXPECT_THAT(log, ::testing::ElementsAre("e1 1", "e2 1"));
}

TEST(FakeStoreTest, ACrashForgetsWhatWasNotDurable) {
  FakeStore store(FakeStore::Mode::kManual);
  store.CreateProblem(MakeProblem("gelu"), [](auto) {});
  store.RunPending();
  int answered = 0;
  Create(store, "acked", [&](absl::Status) { ++answered; });
  store.RunPending();
  Create(store, "lost", [&](absl::Status) { ++answered; });
  EXPECT_EQ(store.DropPending(), 1u);
  Create(store, "unanswered", [&](absl::Status) { ++answered; });
  store.ApplyPendingWithoutAnswer();
  store.RunPending();
  EXPECT_EQ(answered, 1);
  EXPECT_OK(store.GetEvaluation("evaluations/acked", false));
  EXPECT_OK(store.GetEvaluation("evaluations/unanswered", false));
  EXPECT_THAT(store.GetEvaluation("evaluations/lost", false), HasReason("EVALUATION_NOT_FOUND"));
}

}  // namespace
}  // namespace assay
