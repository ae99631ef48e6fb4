// Drives a DispatchQueue with explicit times, as the dispatcher does, with a store that answers
// when the test says so. Only for tests.
#ifndef ASSAY_SERVER_DISPATCH_QUEUE_FIXTURE_H_
#define ASSAY_SERVER_DISPATCH_QUEUE_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/dispatch/queue.h"

namespace assay {

inline constexpr absl::Duration kMinute = absl::Minutes(1);

class QueueTest : public ::testing::Test {
 protected:
  using Kind = QueueAction::Kind;

  explicit QueueTest(QueueOptions options = QueueOptions()) : queue_(options) {}

  std::string Register(const std::string& worker, std::vector<std::string> classes = {"cpu"},
                       int slots = 1, std::vector<QueueLease> held = {}) {
    auto session = queue_.Register({worker, std::move(classes), slots, std::move(held)}, now_);
    EXPECT_OK(session);
    kept_ = session->kept;
    Take();
    return session->session;
  }
  void Enqueue(const std::string& evaluation, const std::string& device_class = "cpu",
               int priority = 0) {
    QueueItem item;
    item.evaluation = evaluation;
    item.device_class = device_class;
    item.priority = priority;
    queue_.Enqueue(item, now_);
  }
  // A second run, which `worker` gets only when no other can take it.
  void EnqueueElsewhere(const std::string& evaluation, const std::string& worker,
                        absl::Duration age = absl::ZeroDuration()) {
    QueueItem item;
    item.evaluation = evaluation;
    item.device_class = "cpu";
    item.other_than = worker;
    item.age = age;
    queue_.Enqueue(item, now_);
  }
  // Takes the actions, keeps those of kinds that tests ask for.
  void Take() {
    for (QueueAction& action : queue_.TakeActions()) actions_.push_back(std::move(action));
  }
  std::vector<QueueAction> Pop(Kind kind) {
    Take();
    std::vector<QueueAction> found;
    for (auto it = actions_.begin(); it != actions_.end();) {
      if (it->kind != kind) {
        ++it;
        continue;
      }
      found.push_back(std::move(*it));
      it = actions_.erase(it);
    }
    return found;
  }
  QueueAction PopOne(Kind kind) {
    std::vector<QueueAction> found = Pop(kind);
    EXPECT_THAT(found, ::testing::SizeIs(1)) << "kind " << static_cast<int>(kind);
    return found.empty() ? QueueAction() : found.front();
  }
  // Polls, commits the grant, and returns the answered lease.
  QueueLease Lease(const std::string& session) {
    EXPECT_OK(queue_.Acquire(session, absl::StrCat("p", ++polls_), kMinute, now_));
    return CommitGrant();
  }
  QueueLease CommitGrant() {
    const QueueAction grant = PopOne(Kind::kRecordLease);
    const QueueLease lease{grant.evaluation, grant.fence};
    queue_.CommitGrant(lease, now_);
    const QueueAction answer = PopOne(Kind::kAnswerLease);
    EXPECT_EQ(answer.evaluation, lease.evaluation);
    return lease;
  }
  // The name of what would be granted next to this session, without committing.
  std::string Granted() {
    std::vector<QueueAction> grants = Pop(Kind::kRecordLease);
    return grants.empty() ? "" : grants.front().evaluation;
  }
  void Pass(absl::Duration time) {
    now_ += time;
    queue_.Tick(now_);
  }
  // Ends the attempt by the worker's word and makes that durable.
  void Fail(const std::string& session, const QueueLease& lease) {
    EXPECT_OK(queue_.Abandon(session, lease, {"INTERNAL", "TOOL_MISSING", "no compiler"}, now_));
    EXPECT_THAT(Pop(Kind::kRecordEnd), ::testing::SizeIs(1));
    queue_.CommitEnd(lease, now_);
  }
  void Finish(const std::string& session, const QueueLease& lease) {
    ASSERT_OK_AND_ASSIGN(CompleteStart start, queue_.Complete(session, lease, now_));
    EXPECT_EQ(start, CompleteStart::kRecord);
    queue_.CommitComplete(lease, now_);
  }

  absl::Duration now_ = absl::Seconds(1000);
  DispatchQueue queue_;
  std::vector<QueueAction> actions_;
  std::vector<QueueLease> kept_;
  int polls_ = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_QUEUE_FIXTURE_H_
