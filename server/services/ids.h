// Evaluation ids: 32 hexadecimal digits, of which 12 are milliseconds since 1970, 4 count within
// the millisecond, and 16 are random. Ids of one process sort in order of creation. Thread-safe.
#ifndef ASSAY_SERVER_SERVICES_IDS_H_
#define ASSAY_SERVER_SERVICES_IDS_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"

namespace assay {

class EvaluationIds {
 public:
  explicit EvaluationIds(Clock* clock) : clock_(clock) {}
  // "evaluations/{id}". Grows strictly, also when the wall clock stands still or goes back.
  std::string NextName();

 private:
  Clock* const clock_;
  absl::Mutex mutex_;
  // Milliseconds and counter in one number.
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_IDS_H_
