// What admission needs in memory: the newest version of every problem, and recently used
// candidates; both without files. The store stays the truth.
#ifndef ASSAY_SERVER_SERVICES_CATALOGUE_H_
#define ASSAY_SERVER_SERVICES_CATALOGUE_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace assay {

namespace v1 {
class Candidate;
class Problem;
}  // namespace v1
class Store;

// Thread-safe. Entries are immutable and stay valid as long as somebody holds them.
class Catalogue {
 public:
  // Reads all problems of the store. Blocks; call before serving.
  absl::Status Load(Store& store);

  // The newest version of "problems/{problem}", without file contents; null when unknown.
  std::shared_ptr<const v1::Problem> Find(std::string_view name) const;

  // After the problem became durable. An older version than the known one changes nothing.
  void Put(const v1::Problem& problem);

  size_t size() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const v1::Problem>, std::less<>> problems_
      ABSL_GUARDED_BY(mutex_);
};

// The last used candidates by name, at most `entries_max`. Candidates are immutable, so an entry
// never goes stale. Thread-safe.
class CandidateCache {
 public:
  explicit CandidateCache(size_t entries_max) : entries_max_(entries_max) {}
  // Null when it is not cached (it may be stored all the same).
  std::shared_ptr<const v1::Candidate> Find(std::string_view name);
  // Keeps a copy without file contents; only of a candidate that is durable.
  void Put(const v1::Candidate& candidate);
  size_t size() const;

 private:
  using Order = std::list<std::shared_ptr<const v1::Candidate>>;  // most recently used first

  const size_t entries_max_;
  mutable absl::Mutex mutex_;
  Order order_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Order::iterator, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_CATALOGUE_H_
