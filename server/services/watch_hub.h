// Hands changes of evaluations to those who watch them. Nothing queues: a subscriber that is slow
// sees the latest snapshot when it is ready again, so memory is bounded by the number of watchers.
#ifndef ASSAY_SERVER_SERVICES_WATCH_HUB_H_
#define ASSAY_SERVER_SERVICES_WATCH_HUB_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace assay {

namespace v1 {
class Evaluation;
}

using EvaluationSnapshot = std::shared_ptr<const v1::Evaluation>;

// What one watcher has seen and what it gets next. Not thread-safe.
class WatchCursor {
 public:
  // The client saw everything up to `after_revision`; 0: nothing.
  explicit WatchCursor(int64_t after_revision) : seen_revision_(after_revision) {}

  // Takes a snapshot that replaces the pending one, unless it is older than what is known. `live`:
  // it came from the hub as it happened, so with an unchanged revision its stage is news; one that
  // was read from the store is not.
  void Offer(EvaluationSnapshot snapshot, bool live);

  // The pending snapshot, once; null when there is none.
  EvaluationSnapshot Take();

  // Nothing will follow what was taken so far: the final state was taken, or the client had seen
  // it.
  bool finished() const { return final_known_ && pending_ == nullptr; }

 private:
  int64_t seen_revision_;
  bool offered_ = false;
  bool final_known_ = false;
  EvaluationSnapshot pending_;
};

// Thread-safe.
class WatchHub {
 public:
  class Subscriber {
   public:
    virtual ~Subscriber() = default;
    // Called without locks, on the publisher's thread: must not block.
    virtual void OnChange(EvaluationSnapshot snapshot) = 0;
    // A token was revoked: look whether it is the own one.
    virtual void OnAccessChange() = 0;
    virtual void OnHubShutdown() = 0;
  };

  explicit WatchHub(size_t subscribers_max) : subscribers_max_(subscribers_max) {}

  // RESOURCE_EXHAUSTED with reason TOO_MANY_WATCHERS; UNAVAILABLE with reason SHUTTING_DOWN. The
  // hub shares ownership until Unsubscribe.
  absl::Status Subscribe(const std::string& evaluation, std::shared_ptr<Subscriber> subscriber);
  // A late OnChange may still arrive from a publication in progress. Unknown ones are ignored.
  void Unsubscribe(const std::string& evaluation, const Subscriber* subscriber);

  // Copies the evaluation (without raw samples) once, and only when somebody watches it.
  void Publish(const v1::Evaluation& evaluation);

  // Has every subscriber look at its token.
  void CheckAccess();

  // Tells every subscriber, and refuses further ones.
  void Shutdown();

  size_t size() const;

 private:
  const size_t subscribers_max_;
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  size_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::vector<std::shared_ptr<Subscriber>>> subscribers_
      ABSL_GUARDED_BY(mutex_);
};

bool IsFinal(const v1::Evaluation& evaluation);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_WATCH_HUB_H_
