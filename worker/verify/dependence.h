// Whether a candidate's outputs depend on what hardware leaves open: the order of blocks, warps and
// lanes, how far approximate functions err, and what clocks show. For candidates on an emulated
// device, where all of it can be chosen.
//
// Not thread-safe. The work outlives the check.
#ifndef ASSAY_WORKER_VERIFY_DEPENDENCE_H_
#define ASSAY_WORKER_VERIFY_DEPENDENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/verify/loaded_work.h"

namespace assay {

namespace internal::v1 {
class OrderDependence;
class RunnerWorkloadReport;
}  // namespace internal::v1

// The content that was presented, for whoever wants to make it again.
struct PresentedCase {
  std::string label;
  uint64_t input_seed = 0;
};

// Holds the outputs of calls on one presented content against each other, bit for bit.
class OrderCheck {
 public:
  OrderCheck(LoadedWork* work, PresentedCase presented)
      : work_(*work), presented_(std::move(presented)) {}

  // After each call that was compared. Keeps one difference from the first call.
  void Note(uint64_t order, bool right);

  // When there was a difference: calls twice more, one block after the other, to tell what the
  // orders alone explain, and tells `report`.
  Step Conclude(internal::v1::RunnerWorkloadReport* report);

  // Whether an output of these two calls was right: then it is the order that makes it wrong.
  bool right_serially() const { return right_serially_; }

 private:
  struct Difference {
    bool found = false;
    size_t tensor = 0;
    int64_t element = 0;
    int64_t count = 0;
    double first = 0;
    double other = 0;
  };
  Difference Compare() const;
  Step CallSerially(uint64_t order);

  LoadedWork& work_;
  const PresentedCase presented_;
  std::vector<std::vector<std::byte>> first_outputs_;
  uint64_t first_order_ = 0;
  uint64_t other_order_ = 0;
  bool first_right_ = true;
  bool other_right_ = true;
  bool right_serially_ = false;
  Difference difference_;
};

// One more call on a content whose output was right, with approximate functions that err within the
// bounds that are documented for them. A wrong output is told to `report`. What a check of the
// device finds in this call is as much a fault as in any other: documented results led to it.
Step CheckApproximations(LoadedWork* work, const PresentedCase& presented,
                         internal::v1::RunnerWorkloadReport* report);

// Two calls on a content whose output was right, from the same image and in the same order, with
// clocks whose rate and offset are drawn from `seed` for the second. Tells `report` when bits of
// outputs or the executed instructions differ.
absl::StatusOr<Step> CheckClocks(LoadedWork* work, const PresentedCase& presented, uint64_t seed,
                                 internal::v1::RunnerWorkloadReport* report);

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_DEPENDENCE_H_
