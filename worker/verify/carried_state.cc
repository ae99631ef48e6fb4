#include "worker/verify/carried_state.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/random.h"
#include "base/status.h"

namespace assay {
namespace {

using internal::v1::CarriedState;
using internal::v1::RunnerWorkloadReport;

constexpr int kCallsMax = 12;
constexpr int kCallsMin = 3;
// About what the battery of a small workload executes.
constexpr int64_t kWarpInstructionsMax = 2'000'000;
// Expected outputs of earlier calls, of one workload.
constexpr size_t kExpectedBytesMax = size_t{64} << 20;
// Right answers of fewer different values may coincide: the largest of all elements that came so
// far is often the largest of an earlier call.
constexpr size_t kRichValues = 16;
constexpr size_t kRichLookedAt = 4096;  // elements of one output
constexpr double kDifferenceRatioMin = 0.01;
constexpr int64_t kDifferenceMin = 1'000;
constexpr char kCase[] = "x1";

bool IsClearlyLess(int64_t less, int64_t than) {
  const auto margin = static_cast<int64_t>(kDifferenceRatioMin * static_cast<double>(than));
  return than - less > std::max(margin, kDifferenceMin);
}

// The most that a call did less than the same call from the first image.
struct Saving {
  int call = 0;  // 0: none did
  int64_t fresh_instructions = 0;
  int64_t instructions = 0;
  int64_t load_bytes = 0;

  void Note(int at, int64_t fresh, int64_t saved_instructions, int64_t saved_bytes) {
    if (call == 0 || saved_instructions > instructions) {
      call = at;
      fresh_instructions = fresh;
    }
    instructions = std::max(instructions, saved_instructions);
    load_bytes = std::max(load_bytes, saved_bytes);
  }
};

}  // namespace

int CarriedStateCheck::CallCount(int64_t warp_instructions) {
  const int64_t affordable = kWarpInstructionsMax / std::max<int64_t>(1, warp_instructions);
  return affordable < kCallsMin ? 0 : static_cast<int>(std::min<int64_t>(affordable, kCallsMax));
}

absl::StatusOr<DrawnTransform> CarriedStateCheck::TransformOf(const Content& content) const {
  return DrawnTransform::Draw(work_.problem(), work_.workload(), content.transform_seed);
}

CarriedStateCheck::Content CarriedStateCheck::NextContent(bool is_derivable) {
  const uint64_t call = seen_.size();
  Random random(DeriveSeed(nonce_, absl::StrCat("carried ", work_.workload().name), call));
  Content content;
  content.transform_seed = random();
  if (call == 0) return content;
  const Content& last = seen_.back().content;
  // The second call comes to the first one's addresses and base and the third to others, for
  // certain.
  const bool new_base = call == 1 ? false : call == 2 || random.Chance(0.5);
  content.base = is_derivable && !new_base ? last.base : last.base + 1;
  const bool moves = call == 1 ? false : call == 2 || random.Chance(0.5);
  content.placement = moves ? ++placements_ : placements_;
  return content;
}

absl::StatusOr<Step> CarriedStateCheck::Show(const Content& content) {
  if (shown_base_ != content.base) {
    shown_base_ = content.base;
    InputCaseSpec spec;
    spec.name = kCase;
    ASSAY_ASSIGN_OR_RETURN(
        const Step step,
        work_.DrawBase(spec,
                       DeriveSeed(nonce_, absl::StrCat("carried base ", work_.workload().name),
                                  content.base)));
    if (step != Step::kDone) return step;
  }
  ASSAY_ASSIGN_OR_RETURN(const DrawnTransform transform, TransformOf(content));
  work_.Present(&transform);
  return Step::kDone;
}

absl::StatusOr<CarriedStateCheck::Answer> CarriedStateCheck::Call(const Content& content,
                                                                  bool keep_variables) {
  ASSAY_ASSIGN_OR_RETURN(step_, Show(content));
  if (step_ != Step::kDone) return Answer::kStop;
  CallConditions conditions;
  conditions.serial = true;
  conditions.keep_variables = keep_variables;
  conditions.placement = content.placement;
  GuestSession& candidate = work_.candidate();
  candidate.SetConditions(conditions);
  step_ = work_.Call(GuestCache::kLeave, nullptr);
  if (step_ == Step::kDone) {
    v1::Verification unused;
    const OutputVerdict verdict = work_.Compare(&unused);
    reason_ = verdict.reason;
    return verdict.right ? Answer::kRight : Answer::kWrong;
  }
  // From the first image it is a call like any other, and so is its end.
  const std::optional<GuestEnd>& ended = candidate.ended();
  if (!keep_variables || !ended.has_value() || ended->kind == 0) return Answer::kStop;
  reason_ = !ended->check.empty() ? ended->check
                                  : internal::v1::GuestFault::Kind_Name(
                                        static_cast<internal::v1::GuestFault::Kind>(ended->kind));
  step_ = Step::kDone;
  ASSAY_RETURN_IF_ERROR(candidate.Revive());
  return Answer::kFault;
}

absl::StatusOr<CarriedStateCheck::Answer> CarriedStateCheck::RunCalls(int call_count,
                                                                      bool is_derivable) {
  for (int call = 1; call <= call_count; ++call) {
    seen_.push_back({NextContent(is_derivable), 0, 0, {}});
    ASSAY_ASSIGN_OR_RETURN(const Answer answer, Call(seen_.back().content, call > 1));
    if (answer != Answer::kRight) return answer;
    Seen& seen = seen_.back();
    if (const v1::ObservedWork* observed = work_.candidate().observed()) {
      seen.thread_instructions = observed->thread_instructions();
      seen.load_bytes = observed->global_load_bytes();
      call_count = std::min(call_count, CallCount(observed->warp_instructions()));
    }
    std::vector<std::vector<std::byte>> expected = work_.CopyExpected();
    for (const std::vector<std::byte>& bytes : expected) expected_bytes_ += bytes.size();
    if (expected_bytes_ <= kExpectedBytesMax) seen.expected = std::move(expected);
  }
  return Answer::kRight;
}

int CarriedStateCheck::StaleCall() {
  for (size_t earlier = seen_.size() - 1; earlier-- > 0;) {
    if (!seen_[earlier].expected.empty() && work_.OutputsMatch(seen_[earlier].expected)) {
      return static_cast<int>(earlier) + 1;
    }
  }
  return 0;
}

bool CarriedStateCheck::IsRich(const Seen& seen) const {
  for (size_t output = 0; output < seen.expected.size(); ++output) {
    const std::vector<std::byte>& bytes = seen.expected[output];
    const auto width = static_cast<size_t>(
        work_.workload().tensors[work_.output_index(output)].reference_element_bytes);
    std::set<std::string_view> values;
    for (size_t at = 0; at + width <= bytes.size() && at < kRichLookedAt * width; at += width) {
      values.emplace(reinterpret_cast<const char*>(bytes.data()) + at, width);
      if (values.size() >= kRichValues) return true;
    }
  }
  return false;
}

CarriedState* CarriedStateCheck::Describe(int call, int kind, RunnerWorkloadReport* report) const {
  CarriedState& out = *report->mutable_carried_state();
  out.Clear();
  const Seen& seen = seen_[static_cast<size_t>(call) - 1];
  out.set_kind(static_cast<CarriedState::Kind>(kind));
  out.set_call(call);
  out.set_input_seed(
      DeriveSeed(nonce_, absl::StrCat("carried base ", work_.workload().name), seen.content.base));
  out.set_input_case(kCase);
  out.set_thread_instructions(seen.thread_instructions);
  return &out;
}

absl::StatusOr<bool> CarriedStateCheck::NeedsResetOnly() {
  const Content last = seen_.back().content;
  if (seen_.size() == 2) return true;
  for (size_t earlier = seen_.size() - 1; earlier-- > 0;) {
    Content first = seen_[earlier].content;
    // The same step from address to address as between the two calls.
    if (first.placement != last.placement) first.placement = ++placements_;
    ASSAY_ASSIGN_OR_RETURN(Answer answer, Call(first, false));
    if (answer == Answer::kStop) return false;
    Content second = last;
    second.placement = first.placement == last.placement ? first.placement : ++placements_;
    ASSAY_ASSIGN_OR_RETURN(answer, Call(second, true));
    if (answer != Answer::kRight) return true;
  }
  return false;
}

absl::StatusOr<bool> CarriedStateCheck::ReplaysInBothOrders(const Seen& earlier) {
  const std::vector<std::vector<std::byte>> expected = work_.CopyExpected();
  // The same step from address to address as between the two calls.
  const Content& last = seen_.back().content;
  Content second = earlier.content;
  if (second.placement != last.placement) second.placement = ++placements_;
  ASSAY_ASSIGN_OR_RETURN(const Answer answer, Call(second, true));
  return answer == Answer::kWrong && work_.OutputsMatch(expected);
}

absl::StatusOr<Step> CarriedStateCheck::Explain(Answer answer, RunnerWorkloadReport* report) {
  const int call = static_cast<int>(seen_.size());
  const std::string reason = reason_;
  const v1::ObservedWork* const observed = work_.candidate().observed();
  if (answer == Answer::kWrong && observed != nullptr) {
    seen_.back().thread_instructions = observed->thread_instructions();
  }
  const int stale = answer == Answer::kWrong ? StaleCall() : 0;
  if (call == 1 && answer == Answer::kWrong) {
    wrong_reason_ = reason;
    return Step::kDone;
  }
  ASSAY_ASSIGN_OR_RETURN(const Answer fresh, Call(seen_.back().content, false));
  if (fresh == Answer::kStop) return step_;
  if (fresh == Answer::kWrong) {
    wrong_reason_ = reason_;
    return Step::kDone;
  }
  const int64_t fresh_instructions = observed == nullptr ? 0 : observed->thread_instructions();
  CarriedState::Kind kind = CarriedState::NEEDS_RESET;
  if (stale > 0) {
    const Seen& earlier = seen_[static_cast<size_t>(stale) - 1];
    // Less work alone proves nothing: a running maximum skips what cannot raise it.
    if (IsRich(earlier) || IsClearlyLess(seen_.back().thread_instructions, fresh_instructions)) {
      ASSAY_ASSIGN_OR_RETURN(const bool replays, ReplaysInBothOrders(earlier));
      if (step_ != Step::kDone) return step_;
      if (replays) kind = CarriedState::STALE_ANSWER;
    }
  }
  if (kind != CarriedState::STALE_ANSWER && answer == Answer::kWrong) {
    ASSAY_ASSIGN_OR_RETURN(const bool needs_reset, NeedsResetOnly());
    if (step_ != Step::kDone) return step_;
    if (!needs_reset) kind = CarriedState::WRONG_LATER;
  }
  CarriedState* const out = Describe(call, kind, report);
  if (kind == CarriedState::STALE_ANSWER) out->set_earlier_call(stale);
  out->set_fresh_thread_instructions(fresh_instructions);
  out->set_reason(reason);
  return Step::kDone;
}

bool CarriedStateCheck::IsDerived(size_t index) const {
  return std::any_of(
      seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(index),
      [&](const Seen& earlier) { return earlier.content.base == seen_[index].content.base; });
}

absl::StatusOr<Step> CarriedStateCheck::CompareWork(RunnerWorkloadReport* report) {
  const std::vector<std::vector<std::byte>> last_outputs = work_.CopyOutputs();
  const bool steady = std::all_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
    return seen.thread_instructions == seen_[0].thread_instructions &&
           seen.load_bytes == seen_[0].load_bytes;
  });
  // Where every call did what the first one did, the last stands for all.
  const size_t least = steady ? seen_.size() - 1 : 1;
  Saving derived, unrelated;
  for (size_t i = seen_.size(); i-- > least;) {
    const Seen& seen = seen_[i];
    ASSAY_ASSIGN_OR_RETURN(const Answer fresh, Call(seen.content, false));
    if (fresh == Answer::kStop) return step_;
    const v1::ObservedWork* const observed = work_.candidate().observed();
    if (fresh == Answer::kWrong) {
      wrong_reason_ = reason_;
      return Step::kDone;
    }
    if (observed == nullptr) return Step::kDone;
    const int64_t instructions = observed->thread_instructions();
    const int64_t loads = observed->global_load_bytes();
    if (IsClearlyLess(seen.thread_instructions, instructions) ||
        IsClearlyLess(seen.load_bytes, loads)) {
      Saving& saving = IsDerived(i) ? derived : unrelated;
      saving.Note(static_cast<int>(i) + 1, instructions, instructions - seen.thread_instructions,
                  loads - seen.load_bytes);
      continue;
    }
    const bool more = IsClearlyLess(instructions, seen.thread_instructions);
    const bool other_bits = i + 1 == seen_.size() && work_.CopyOutputs() != last_outputs;
    if (!more && !other_bits) continue;
    Describe(static_cast<int>(i) + 1, more ? CarriedState::MORE_WORK : CarriedState::OTHER_BITS,
             report)
        ->set_fresh_thread_instructions(instructions);
  }
  if (derived.call == 0 && unrelated.call == 0) return Step::kDone;
  // What is saved on unrelated content too was made from none of it. A stall is no table.
  const bool stalls = report->has_clock_dependence();
  const bool is_carried = stalls || IsClearlyLess(unrelated.instructions, derived.instructions) ||
                          IsClearlyLess(unrelated.load_bytes, derived.load_bytes);
  // A call that did more accuses; a table of constants explains nothing of that.
  if (!is_carried && report->carried_state().kind() == CarriedState::MORE_WORK) return Step::kDone;
  const Saving& shown = derived.call > 0 ? derived : unrelated;
  Describe(shown.call, is_carried ? CarriedState::LESS_WORK : CarriedState::KEPT_CONSTANTS, report)
      ->set_fresh_thread_instructions(shown.fresh_instructions);
  return Step::kDone;
}

absl::StatusOr<Step> CarriedStateCheck::Run(int call_count, RunnerWorkloadReport* report) {
  if (call_count < kCallsMin) return Step::kDone;
  ASSAY_ASSIGN_OR_RETURN(const DrawnTransform probe, TransformOf({}));
  ASSAY_ASSIGN_OR_RETURN(const Answer answer, RunCalls(call_count, !probe.is_identity()));
  switch (answer) {
    case Answer::kStop:
      return step_;
    case Answer::kRight:
      return CompareWork(report);
    case Answer::kWrong:
    case Answer::kFault:
      return Explain(answer, report);
  }
  return Step::kDone;
}

}  // namespace assay
