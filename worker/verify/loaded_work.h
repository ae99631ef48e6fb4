// One workload with its two guests, the candidate's and the reference's: draws inputs, has the
// reference compute what is expected, calls the candidate and compares.
//
// The base content lives in the reference guest's buffers. What the candidate sees is the base, or
// an exact transform of it with the expected outputs transformed alike, so that one run of the
// reference checks many calls.
//
// Not thread-safe. Owns both guests. Three kinds of bad news stay apart: a bad absl::Status is the
// infrastructure's; Step::kCandidateEnded and Step::kReferenceFault tell whose fault it is.
#ifndef ASSAY_WORKER_VERIFY_LOADED_WORK_H_
#define ASSAY_WORKER_VERIFY_LOADED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kernels/inputs/inputs.h"
#include "kernels/problem.h"
#include "kernels/tolerance/tolerance.h"
#include "worker/guest/guest_session.h"
#include "worker/verify/two_halves.h"

namespace assay {

namespace v1 {
class Verification;
}

enum class Step {
  kDone,
  kCandidateEnded,  // see candidate().ended()
  kReferenceFault,  // see reference_fault()
};

// Whether the outputs of one call were right.
struct OutputVerdict {
  bool right = true;
  std::string reason;  // MISMATCH, NAN_OUTPUT, OUTPUT_NOT_WRITTEN; empty when right
};

struct LoadedWorkOptions {
  const v1::Problem* problem = nullptr;  // outlives the work
  ResolvedWorkload workload;
  std::unique_ptr<GuestSession> candidate;
  std::unique_ptr<GuestSession> reference;
  absl::Duration call_timeout;
  Clock* clock = nullptr;
  // Idle between calls, so that passes over large tensors may use it beside the caller's; -1: none.
  int spare_core = -1;
  // Called before each call of a guest and before each tensor is filled or compared; may be empty.
  std::function<void()> show_life;
};

class LoadedWork {
 public:
  explicit LoadedWork(LoadedWorkOptions options);

  // Loads both artifacts into their guests.
  absl::StatusOr<Step> Load(int candidate_fd, int reference_fd);

  // Draws the inputs of `input_case` and runs the reference on them. Its outputs must all be
  // written, and finite unless an input is not.
  absl::StatusOr<Step> DrawBase(const InputCaseSpec& input_case, uint64_t seed);

  // Shows the base to the candidate, under `transform` unless it is null.
  void Present(const DrawnTransform* transform);

  // Poisons the outputs and calls the candidate once. `timing` may be null.
  Step Call(GuestCache cache, CallTiming* timing);

  // A call whose outputs nobody looks at.
  Step CallUnchecked(GuestCache cache, CallTiming* timing);

  // A call on the content presented last, of which a few elements of the inputs hold other values
  // until the candidate is ready for it: an answer that it has by then is wrong. `early`: wrong,
  // right for the inputs as they were before, and right when asked again. The base is lost when it
  // was wrong.
  absl::StatusOr<Step> CallAltered(uint64_t seed, v1::Verification* record, OutputVerdict* verdict,
                                   bool* early);

  // A call of the reference's guest that does nothing.
  Step CallReferenceEmpty(GuestCache cache, CallTiming* timing);
  // The same of the candidate, where it is a device that does nothing.
  Step CallCandidateEmpty(GuestCache cache, CallTiming* timing);

  // Compares the outputs with what is expected for the content presented last. Adds the worst
  // errors to `record`, and the first mismatch when it has none yet.
  OutputVerdict Compare(v1::Verification* record);

  // After Compare found a wrong output: runs the reference on the content presented last. A
  // reference fault when the outputs are right by that, and so the declared transform is wrong.
  // The base is lost.
  Step CheckTransform();

  // Whether the outputs as they stand are right for `transform` of the base (null: the base
  // itself). Overwrites what Compare expects.
  bool OutputsMatch(const DrawnTransform* transform);

  // What Compare expects for the content presented last, by output.
  std::vector<std::vector<std::byte>> CopyExpected();
  // Whether the outputs as they stand are right by such a copy. Compare expects what it did before.
  bool OutputsMatch(const std::vector<std::vector<std::byte>>& expected);

  // The candidate's outputs as they stand, in the problem's order.
  std::vector<std::vector<std::byte>> CopyOutputs();
  // What Compare expects of an output, as the reference wrote it.
  std::span<const std::byte> expected(size_t output);
  // Index into workload().tensors of an output.
  size_t output_index(size_t output) const { return input_count_ + output; }

  // Remembers the outputs as they stand under `label`.
  void RememberOutputs(std::string_view label);
  // The label under which the same outputs, bit for bit, were remembered; empty: none.
  std::string RememberedLabel() const;

  // SHA-256 of the base inputs.
  std::string InputFingerprint();

  const v1::Problem& problem() const { return *options_.problem; }
  const ResolvedWorkload& workload() const { return options_.workload; }
  // Candidate's and reference's, for whoever disposes of them. The work is spent.
  std::pair<std::unique_ptr<GuestSession>, std::unique_ptr<GuestSession>> ReleaseGuests() {
    return {std::move(options_.candidate), std::move(options_.reference)};
  }

  GuestSession& candidate() { return *options_.candidate; }
  const std::optional<GuestEnd>& reference_ended() const { return options_.reference->ended(); }
  Clock& clock() { return *options_.clock; }
  // Set with Step::kReferenceFault.
  const GuestEnd& reference_fault() const { return reference_fault_; }
  // Name of the case that was drawn last; empty: none.
  const std::string& base_case() const { return base_case_; }
  // What the last run of the reference took.
  absl::Duration reference_time() const { return reference_time_; }

 private:
  std::vector<GuestBuffer> Buffers(bool reference) const;
  Step FailReference(std::string message);
  // Runs `pass` over a tensor, in two shares where it is large; `rows`: no row is cut.
  using Pass = std::function<void(int half, ElementRange range)>;
  void InHalves(const TensorShape& tensor, bool rows, const Pass& pass);
  void PoisonOutputs();
  // A value for one element of the candidate's inputs.
  struct Alteration {
    std::byte* at = nullptr;
    std::vector<std::byte> value;
  };
  absl::StatusOr<std::vector<Alteration>> DrawAlterations(uint64_t seed);
  // Takes the candidate's inputs for the base, and runs the reference on them.
  Step TakeInputsForBase(const std::string& input_case);
  Step CheckReferenceOutputs();
  bool InputsFinite();
  void ShowLife() {
    if (options_.show_life) options_.show_life();
  }
  // Runs the reference on the inputs in its buffers.
  Step RunReference(const std::string& input_case);
  uint64_t OutputsHash() const;
  void ExpectBase();
  void ExpectTransformed(const DrawnTransform& transform);
  std::optional<OutputComparison> CompareInPassing(size_t output);
  void RecordMismatch(size_t tensor, const OutputComparison& comparison,
                      v1::Verification* record) const;

  LoadedWorkOptions options_;
  TwoHalves halves_;
  size_t input_count_ = 0;
  // The transform of the content presented last; none for the base itself.
  std::optional<DrawnTransform> pending_;
  std::vector<std::vector<std::byte>> transformed_;  // expected outputs under it, where asked for
  // What Compare expects, by output; empty: under pending_, and not asked for as a whole yet.
  std::vector<std::span<const std::byte>> want_;
  std::vector<std::optional<OutputScale>> base_scales_;  // of the base's outputs, where known
  std::vector<std::pair<uint64_t, std::string>> seen_;   // hashes of outputs, with labels
  struct alignas(64) Elsewhere {  // a line of its own, as the elements of an input mostly are
    uint64_t value = 0;
  };
  std::vector<Elsewhere> unchanged_;
  uint64_t turns_ = 0;
  std::string base_case_;
  GuestEnd reference_fault_;
  absl::Duration reference_time_ = absl::ZeroDuration();
};

// A seed that follows from the nonce and from what it is for.
uint64_t DeriveSeed(uint64_t nonce, std::string_view purpose, uint64_t index);

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_LOADED_WORK_H_
