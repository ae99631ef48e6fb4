#include "server/services/watch_hub.h"

#include "assay/v1/evaluation.pb.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

v1::Evaluation Snapshot(int64_t revision, v1::State state, const char* stage = "") {
  v1::Evaluation evaluation;
  evaluation.set_name("evaluations/1");
  evaluation.set_revision(revision);
  evaluation.set_state(state);
  evaluation.set_stage(stage);
  return evaluation;
}

EvaluationSnapshot Shared(int64_t revision, v1::State state, const char* stage = "") {
  return std::make_shared<const v1::Evaluation>(Snapshot(revision, state, stage));
}

TEST(WatchCursor, GivesWhatIsNewOnce) {
  WatchCursor cursor(0);
  EXPECT_TRUE(cursor.Take() == nullptr);
  cursor.Offer(Shared(1, v1::QUEUED), false);
  ASSERT_TRUE(cursor.Take() != nullptr);
  EXPECT_TRUE(cursor.Take() == nullptr);
  cursor.Offer(Shared(1, v1::QUEUED), false);
  EXPECT_TRUE(cursor.Take() == nullptr) << "the same state from the store is no news";
  EXPECT_FALSE(cursor.finished());
}

TEST(WatchCursor, MergesWhileTheConsumerIsSlow) {
  WatchCursor cursor(0);
  cursor.Offer(Shared(1, v1::QUEUED), false);
  cursor.Offer(Shared(2, v1::RUNNING), true);
  cursor.Offer(Shared(2, v1::RUNNING, "BUILD"), true);
  cursor.Offer(Shared(2, v1::RUNNING, "VERIFY"), true);
  const EvaluationSnapshot got = cursor.Take();
  ASSERT_TRUE(got != nullptr);
  EXPECT_EQ(got->stage(), "VERIFY");
  EXPECT_TRUE(cursor.Take() == nullptr);
}

TEST(WatchCursor, AStaleReadDoesNotHideALiveChange) {
  WatchCursor cursor(0);
  cursor.Offer(Shared(2, v1::RUNNING, "BUILD"), true);
  cursor.Offer(Shared(1, v1::QUEUED), false);
  cursor.Offer(Shared(2, v1::RUNNING), false);
  const EvaluationSnapshot got = cursor.Take();
  ASSERT_TRUE(got != nullptr);
  EXPECT_EQ(got->revision(), 2);
  EXPECT_EQ(got->stage(), "BUILD");
}

TEST(WatchCursor, ResumesAfterARevision) {
  WatchCursor cursor(2);
  cursor.Offer(Shared(2, v1::RUNNING), false);
  EXPECT_TRUE(cursor.Take() == nullptr);
  cursor.Offer(Shared(2, v1::RUNNING, "MEASURE"), true);
  ASSERT_TRUE(cursor.Take() != nullptr);
  cursor.Offer(Shared(3, v1::SUCCEEDED), true);
  EXPECT_FALSE(cursor.finished()) << "the final state is still to be taken";
  ASSERT_TRUE(cursor.Take() != nullptr);
  EXPECT_TRUE(cursor.finished());
}

TEST(WatchCursor, EndsAtOnceWhenTheClientKnowsTheEnd) {
  for (int64_t after : {3, 9}) {
    WatchCursor cursor(after);
    cursor.Offer(Shared(3, v1::SUCCEEDED), false);
    EXPECT_TRUE(cursor.Take() == nullptr) << after;
    EXPECT_TRUE(cursor.finished()) << after;
  }
}

class Recorder : public WatchHub::Subscriber {
 public:
  void OnChange(EvaluationSnapshot snapshot) override { snapshots.push_back(std::move(snapshot)); }
  void OnAccessChange() override { ++access_changes; }
  void OnHubShutdown() override { ++shutdowns; }
  std::vector<EvaluationSnapshot> snapshots;
  int access_changes = 0;
  int shutdowns = 0;
};

TEST(WatchHub, DeliversToItsWatchersOnlyAndWithoutSamples) {
  WatchHub hub(10);
  auto one = std::make_shared<Recorder>();
  auto two = std::make_shared<Recorder>();
  ASSERT_OK(hub.Subscribe("evaluations/1", one));
  ASSERT_OK(hub.Subscribe("evaluations/2", two));
  v1::Evaluation done = Snapshot(3, v1::SUCCEEDED);
  v1::Measurement* measurement =
      done.mutable_outcome()->add_workload_results()->mutable_measurement();
  measurement->set_median_ns(5);
  measurement->add_runners()->add_warm_ns(5);
  hub.Publish(done);
  ASSERT_EQ(one->snapshots.size(), 1u);
  EXPECT_TRUE(two->snapshots.empty());
  const v1::Measurement& got = one->snapshots[0]->outcome().workload_results(0).measurement();
  EXPECT_EQ(got.median_ns(), 5);
  EXPECT_EQ(got.runners_size(), 0);
  EXPECT_EQ(measurement->runners_size(), 1) << "the published one is not touched";
  hub.Unsubscribe("evaluations/1", one.get());
  hub.Unsubscribe("evaluations/1", one.get());
  hub.Publish(done);
  EXPECT_EQ(one->snapshots.size(), 1u);
  EXPECT_EQ(hub.size(), 1u);
}

TEST(WatchHub, IsBoundedAndShutsDown) {
  WatchHub hub(2);
  auto recorder = std::make_shared<Recorder>();
  ASSERT_OK(hub.Subscribe("evaluations/1", recorder));
  ASSERT_OK(hub.Subscribe("evaluations/1", recorder));
  EXPECT_THAT(hub.Subscribe("evaluations/2", recorder), HasReason("TOO_MANY_WATCHERS"));
  hub.Unsubscribe("evaluations/1", recorder.get());
  ASSERT_OK(hub.Subscribe("evaluations/2", recorder));
  hub.Shutdown();
  EXPECT_EQ(recorder->shutdowns, 2);
  EXPECT_EQ(hub.size(), 0u);
  EXPECT_THAT(hub.Subscribe("evaluations/2", recorder), HasReason("SHUTTING_DOWN"));
}

}  // namespace
}  // namespace assay
