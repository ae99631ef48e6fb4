// Shows a candidate content that it has not seen, call by call.
#ifndef ASSAY_WORKER_MEASURE_FRESH_CONTENT_H_
#define ASSAY_WORKER_MEASURE_FRESH_CONTENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/inputs/inputs.h"
#include "worker/verify/loaded_work.h"

namespace assay {

// What is measured: the problem's own distributions.
inline constexpr std::string_view kMeasuredCase = "x1";
absl::StatusOr<Step> DrawMeasuredBase(LoadedWork* work, uint64_t seed);

// Each content is a base of its own or, where the problem declares transforms, an exact transform
// of a base that was shown before. New bases come after a random number of calls, so that nobody
// can tell when one is due; each costs a run of the reference. Not thread-safe.
class FreshContent {
 public:
  // Every choice follows from `seed`. The work outlives this.
  FreshContent(LoadedWork* work, uint64_t seed) : work_(work), seed_(seed) {}

  // After it the outputs of the next call are compared with what is right for the new content.
  // Draws a new base when one is due; after that the candidate is called again on what it saw last,
  // since the reference has used its core and caches meanwhile.
  absl::StatusOr<Step> PresentNext();

  // Content for a call whose answer is looked at and whose time is not: fresh, and of the present
  // base where the problem declares transforms.
  absl::StatusOr<Step> PresentForAlteredCall();

  // Whether the next content has a new base, so that the present one may be spent.
  bool is_new_base_due() const { return always_new_ || calls_left_ == 0; }

  // The next content has a new base, or, with `for_good`, every one from now on.
  void RequireNewBase(bool for_good) {
    calls_left_ = 0;
    always_new_ = always_new_ || for_good;
  }

  // The newest content is the first of its base: no earlier answer helps with it.
  bool is_new_base() const { return transforms_.size() <= 1; }

  // What the wrong outputs of timed call number `call`, on the newest content, are the right answer
  // to; empty: to nothing that was asked.
  std::string StaleSource(int call);

 private:
  absl::StatusOr<Step> DrawBase();
  // How many contents are derived from the present base.
  int DrawDerivedCalls() const;

  LoadedWork* const work_;
  const uint64_t seed_;
  uint64_t drawn_ = 0;
  uint64_t bases_ = 0;
  int calls_left_ = 0;  // on the present base
  bool always_new_ = false;
  std::vector<DrawnTransform> transforms_;  // of the present base, the newest last
};

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_FRESH_CONTENT_H_
