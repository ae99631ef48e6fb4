#include "server/services/watch_hub.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "store/records.h"

namespace assay {

bool IsFinal(const v1::Evaluation& evaluation) {
  return evaluation.state() == v1::SUCCEEDED || evaluation.state() == v1::FAILED ||
         evaluation.state() == v1::CANCELLED;
}

void WatchCursor::Offer(EvaluationSnapshot snapshot, bool live) {
  const int64_t revision = snapshot->revision();
  if (final_known_ && pending_ == nullptr) return;
  if (revision < seen_revision_) {
    // The client claims to know a later revision than the store's: only the end can be told.
    final_known_ |= !live && IsFinal(*snapshot);
    return;
  }
  if (revision == seen_revision_) {
    // The first read of what the client knows already is no news; a live change of stage is.
    if (!live && (offered_ || revision > 0)) {
      final_known_ |= IsFinal(*snapshot);
      return;
    }
  }
  seen_revision_ = revision;
  offered_ = true;
  final_known_ |= IsFinal(*snapshot);
  pending_ = std::move(snapshot);
}

EvaluationSnapshot WatchCursor::Take() { return std::exchange(pending_, nullptr); }

absl::Status WatchHub::Subscribe(const std::string& evaluation,
                                 std::shared_ptr<Subscriber> subscriber) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                           "the server is shutting down; watch again with after_revision");
  }
  if (size_ >= subscribers_max_) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "TOO_MANY_WATCHERS",
                           absl::StrCat(size_,
                                        " watches are open, which is the limit; poll "
                                        "GetEvaluation or retry later"));
  }
  ++size_;
  subscribers_[evaluation].push_back(std::move(subscriber));
  return absl::OkStatus();
}

void WatchHub::Unsubscribe(const std::string& evaluation, const Subscriber* subscriber) {
  std::shared_ptr<Subscriber> released;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto it = subscribers_.find(evaluation);
  if (it == subscribers_.end()) return;
  auto& list = it->second;
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const auto& entry) { return entry.get() == subscriber; });
  if (found == list.end()) return;
  released = std::move(*found);
  list.erase(found);
  --size_;
  if (list.empty()) subscribers_.erase(it);
}

void WatchHub::Publish(const v1::Evaluation& evaluation) {
  std::vector<std::shared_ptr<Subscriber>> targets;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = subscribers_.find(evaluation.name());
    if (it == subscribers_.end()) return;
    targets = it->second;
  }
  auto snapshot = std::make_shared<v1::Evaluation>(evaluation);
  StripSamples(snapshot.get());
  for (const auto& target : targets) target->OnChange(snapshot);
}

void WatchHub::CheckAccess() {
  std::vector<std::shared_ptr<Subscriber>> targets;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, list] : subscribers_) {
      targets.insert(targets.end(), list.begin(), list.end());
    }
  }
  for (const auto& target : targets) target->OnAccessChange();
}

void WatchHub::Shutdown() {
  std::map<std::string, std::vector<std::shared_ptr<Subscriber>>> all;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    all.swap(subscribers_);
    size_ = 0;
  }
  for (const auto& [name, list] : all) {
    for (const auto& subscriber : list) subscriber->OnHubShutdown();
  }
}

size_t WatchHub::size() const {
  absl::MutexLock lock(&mutex_);
  return size_;
}

}  // namespace assay
