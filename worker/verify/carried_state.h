// Whether a candidate's module-scope variables carry anything from call to call. The harness puts
// them back before every call that counts, so that nothing is gained; one that tries is found here.
// For candidates on an emulated device.
//
// Not thread-safe. The work outlives the check.
#ifndef ASSAY_WORKER_VERIFY_CARRIED_STATE_H_
#define ASSAY_WORKER_VERIFY_CARRIED_STATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/inputs/inputs.h"
#include "worker/verify/loaded_work.h"

namespace assay {

namespace internal::v1 {
class CarriedState;
class RunnerWorkloadReport;
}  // namespace internal::v1

// Calls the candidate on fresh contents, one after the other, in the natural order of blocks that
// run alone, and puts variables back before the first call only. Some contents come to the same
// addresses as the one before, the others to new ones. What looks like carried state is held
// against a call on the same content from the first image.
class CarriedStateCheck {
 public:
  // Every content follows from `nonce`.
  CarriedStateCheck(LoadedWork* work, uint64_t nonce) : work_(*work), nonce_(nonce) {}

  // How many calls in a row are affordable where one executes so many warp instructions: 12, fewer
  // where one costs more than a quick battery, and none where three are too many.
  static int CallCount(int64_t warp_instructions);

  // Ends sooner where the first call shows that calls are dearer when blocks run alone, as those
  // are that wait for each other. Tells `report` what was found. After it `wrong_reason` is set
  // when a content was answered wrong from the first image too, which has nothing to do with state.
  // The base is lost.
  absl::StatusOr<Step> Run(int call_count, internal::v1::RunnerWorkloadReport* report);

  const std::string& wrong_reason() const { return wrong_reason_; }

 private:
  // What one call works on: a base, drawn anew or that of the call before, and a transform of it.
  struct Content {
    uint64_t base = 0;
    uint64_t transform_seed = 0;
    uint64_t placement = 0;
  };
  // What is known of one call.
  struct Seen {
    Content content;
    int64_t thread_instructions = 0;
    int64_t load_bytes = 0;
    std::vector<std::vector<std::byte>> expected;  // empty: too large to keep
  };
  enum class Answer { kRight, kWrong, kFault, kStop };

  absl::StatusOr<DrawnTransform> TransformOf(const Content& content) const;
  Content NextContent(bool is_derivable);
  // Draws the base when it is another one, and presents the content.
  absl::StatusOr<Step> Show(const Content& content);
  // kStop: step_ says why. kFault: the session was revived.
  absl::StatusOr<Answer> Call(const Content& content, bool keep_variables);
  absl::StatusOr<Answer> RunCalls(int call_count, bool is_derivable);
  // The last call of seen_ was wrong or ended. Says what it proves.
  absl::StatusOr<Step> Explain(Answer answer, internal::v1::RunnerWorkloadReport* report);
  // The earlier call whose answer stands in the outputs, from 1; 0: none.
  int StaleCall();
  // Whether so many different values cannot have come about by chance.
  bool IsRich(const Seen& seen) const;
  // Whether the last content's answer, given from the first image just now, is also what the
  // content of `earlier` gets after it. One that accumulates gives the answer to one of the two in
  // both orders; one that replays gives each time the first.
  absl::StatusOr<bool> ReplaysInBothOrders(const Seen& earlier);
  // Whether some one earlier call is enough to make the last content's answer wrong.
  absl::StatusOr<bool> NeedsResetOnly();
  // All were right: whether one did other work than from the first image.
  absl::StatusOr<Step> CompareWork(internal::v1::RunnerWorkloadReport* report);
  // Whether call `index` works on a base that an earlier one had.
  bool IsDerived(size_t index) const;
  internal::v1::CarriedState* Describe(int call, int kind,
                                       internal::v1::RunnerWorkloadReport* report) const;

  LoadedWork& work_;
  const uint64_t nonce_;
  std::vector<Seen> seen_;
  std::optional<uint64_t> shown_base_;
  size_t expected_bytes_ = 0;
  uint64_t placements_ = 0;
  Step step_ = Step::kDone;
  std::string reason_;  // of the last wrong answer or fault
  std::string wrong_reason_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_CARRIED_STATE_H_
