#include "worker/verify/loaded_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr int kReferenceTimeoutFactor = 3;           // references are plain and slow by design
constexpr int kAlteredElements = 4;                  // of each input, at most
constexpr size_t kRememberedMax = 4096;              // outputs remembered by hash
constexpr int64_t kRowBytesMax = 1 << 20;            // of one row that is compared in passing
constexpr int64_t kHalvedBytesMin = 1 << 20;         // below, waking a thread takes longer
constexpr size_t kHashedWordsMax = size_t{1} << 13;  // 8-byte words of one output in its hash

const v1::Tensor& ProblemTensor(const v1::Problem& problem, const std::string& name) {
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.name() == name) return tensor;
  }
  return v1::Tensor::default_instance();
}

template <typename Byte>
std::span<Byte> BytesOf(ElementRange range, size_t element_bytes, std::span<Byte> tensor) {
  return tensor.subspan(static_cast<size_t>(range.begin) * element_bytes,
                        static_cast<size_t>(range.end - range.begin) * element_bytes);
}

// The output as the reference writes it.
TensorShape ReferenceShape(const TensorShape& tensor, const v1::TolerancePolicy& policy) {
  TensorShape shape = tensor;
  if (policy.kind() == v1::TolerancePolicy::SCALED) shape.dtype = DataType::kF64;
  shape.bytes = tensor.elements * tensor.reference_element_bytes;
  return shape;
}

// Index of the first NaN or infinity, or -1.
template <typename T>
int64_t FirstNotFinite(std::span<const std::byte> bytes) {
  const T* values = reinterpret_cast<const T*>(bytes.data());
  const int64_t count = static_cast<int64_t>(bytes.size() / sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

int64_t FirstNotFinite16(std::span<const std::byte> bytes, uint16_t exponent) {
  const uint16_t* values = reinterpret_cast<const uint16_t*>(bytes.data());
  const int64_t count = static_cast<int64_t>(bytes.size() / sizeof(uint16_t));
  for (int64_t i = 0; i < count; ++i) {
    if ((values[i] & exponent) == exponent) return i;
  }
  return -1;
}

int64_t FirstNotFinite(DataType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DataType::kF32:
      return FirstNotFinite<float>(bytes);
    case DataType::kF64:
      return FirstNotFinite<double>(bytes);
    case DataType::kF16:
      return FirstNotFinite16(bytes, 0x7c00);
    case DataType::kBF16:
      return FirstNotFinite16(bytes, 0x7f80);
    default:
      return -1;
  }
}

std::string ElementName(const TensorShape& tensor, int64_t flat) {
  return absl::StrCat(tensor.name, "[", absl::StrJoin(UnflattenIndex(tensor, flat), ","), "]");
}

}  // namespace

uint64_t DeriveSeed(uint64_t nonce, std::string_view purpose, uint64_t index) {
  uint64_t state = nonce;
  for (const char c : purpose) state = MixBits(state + kGoldenGamma + static_cast<uint8_t>(c));
  return MixBits(state + (index + 1) * kGoldenGamma);
}

LoadedWork::LoadedWork(LoadedWorkOptions options)
    : options_(std::move(options)), halves_(options_.spare_core) {
  for (const TensorShape& tensor : options_.workload.tensors) {
    if (!tensor.is_output) ++input_count_;
  }
  want_.resize(options_.workload.tensors.size() - input_count_);
  unchanged_.resize(input_count_ * kAlteredElements);
}

std::vector<GuestBuffer> LoadedWork::Buffers(bool reference) const {
  std::vector<GuestBuffer> buffers;
  for (const TensorShape& tensor : options_.workload.tensors) {
    const int64_t bytes = reference && tensor.is_output
                              ? tensor.elements * tensor.reference_element_bytes
                              : tensor.bytes;
    buffers.push_back({tensor.name, static_cast<size_t>(bytes), tensor.is_output});
  }
  return buffers;
}

Step LoadedWork::FailReference(std::string message) {
  const std::optional<GuestEnd>& ended = options_.reference->ended();
  if (ended.has_value()) reference_fault_ = *ended;
  reference_fault_.message = std::move(message);
  return Step::kReferenceFault;
}

absl::StatusOr<Step> LoadedWork::Load(int candidate_fd, int reference_fd) {
  const std::vector<int64_t>& axes = options_.workload.axis_values;
  absl::Status status = options_.reference->Load(reference_fd, Buffers(true), axes);
  if (options_.reference->ended().has_value()) {
    return FailReference(
        absl::StrCat("the reference cannot be loaded: ", options_.reference->ended()->message));
  }
  if (!status.ok()) return Annotate(status, "loading the reference");
  status = options_.candidate->Load(candidate_fd, Buffers(false), axes);
  if (options_.candidate->ended().has_value()) return Step::kCandidateEnded;
  if (!status.ok()) return Annotate(status, "loading the candidate");
  return Step::kDone;
}

void LoadedWork::InHalves(const TensorShape& tensor, bool rows, const Pass& pass) {
  if (tensor.bytes < kHalvedBytesMin) return pass(0, AllElements(tensor));
  halves_.Run([&](int half) {
    const ElementRange range = ShareOfElements(tensor, rows, half, 2);
    if (!range.empty()) pass(half, range);
  });
}

absl::StatusOr<Step> LoadedWork::DrawBase(const InputCaseSpec& input_case, uint64_t seed) {
  base_case_ = input_case.name;
  for (size_t i = 0; i < input_count_; ++i) {
    ShowLife();
    const TensorShape& tensor = workload().tensors[i];
    const std::span<std::byte> bytes = options_.reference->Buffer(i);
    std::array<absl::Status, 2> statuses;
    InHalves(tensor, false, [&](int half, ElementRange range) {
      statuses[half] = GenerateInputPart(problem(), workload(), i, input_case, seed, range.begin,
                                         BytesOf(range, DataTypeSize(tensor.dtype), bytes));
    });
    for (const absl::Status& status : statuses) ASSAY_RETURN_IF_ERROR(status);
  }
  return RunReference(input_case.name);
}

Step LoadedWork::RunReference(const std::string& input_case) {
  GuestSession& reference = *options_.reference;
  for (size_t i = input_count_; i < workload().tensors.size(); ++i) {
    const TensorShape& tensor = workload().tensors[i];
    const TensorShape shape =
        ReferenceShape(tensor, ProblemTensor(problem(), tensor.name).tolerance());
    InHalves(shape, false, [&](int /*half*/, ElementRange range) {
      PoisonOutput(shape, reference.Buffer(i), range);
    });
  }
  base_scales_.clear();
  ShowLife();
  const absl::Duration start = clock().Monotonic();
  const std::optional<CallTiming> timing =
      reference.Call(GuestCache::kLeave, kReferenceTimeoutFactor * options_.call_timeout);
  reference_time_ = clock().Monotonic() - start;
  if (!timing.has_value()) {
    const std::optional<GuestEnd>& ended = reference.ended();
    return FailReference(absl::StrCat("the reference failed on input case ", input_case, ": ",
                                      ended.has_value() ? ended->message : "it did not answer"));
  }
  const Step step = CheckReferenceOutputs();
  if (step != Step::kDone) {
    reference_fault_.message =
        absl::StrCat(reference_fault_.message, " (input case ", input_case, ")");
  }
  return step;
}

Step LoadedWork::TakeInputsForBase(const std::string& input_case) {
  for (size_t i = 0; i < input_count_; ++i) {
    const std::span<const std::byte> from = options_.candidate->Buffer(i);
    std::memcpy(options_.reference->Buffer(i).data(), from.data(), from.size());
  }
  const Step step = RunReference(input_case);
  ExpectBase();
  return step;
}

Step LoadedWork::CheckTransform() {
  const Step step = TakeInputsForBase(absl::StrCat(base_case_, " transformed"));
  if (step != Step::kDone || !OutputsMatch(nullptr)) return step;
  return FailReference(
      "a declared transform is not exact: the reference on the transformed inputs agrees with the "
      "candidate, and not with the transformed outputs; mend or remove it");
}

absl::StatusOr<std::vector<LoadedWork::Alteration>> LoadedWork::DrawAlterations(uint64_t seed) {
  InputCaseSpec input_case;
  input_case.name = base_case_;
  Random random(seed);
  std::vector<Alteration> alterations;
  for (size_t i = 0; i < input_count_; ++i) {
    const auto elements = static_cast<uint64_t>(workload().tensors[i].elements);
    const std::span<std::byte> bytes = options_.candidate->Buffer(i);
    const size_t element_bytes = bytes.size() / elements;
    for (int change = 0; change < kAlteredElements; ++change) {
      const uint64_t element = random.Below(elements);
      std::vector<std::byte> value(element_bytes);
      ASSAY_RETURN_IF_ERROR(GenerateInputPart(problem(), workload(), i, input_case, seed,
                                              static_cast<int64_t>(element), value));
      alterations.push_back({bytes.data() + element * element_bytes, std::move(value)});
    }
  }
  return alterations;
}

absl::StatusOr<Step> LoadedWork::CallAltered(uint64_t seed, v1::Verification* record,
                                             OutputVerdict* verdict, bool* early) {
  // Ahead, so that the call takes no longer to begin than any other.
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Alteration> before, DrawAlterations(seed));
  std::vector<Alteration> after;
  for (const Alteration& change : before) {
    after.push_back({change.at, {change.at, change.at + change.value.size()}});
  }
  const auto apply = [](const std::vector<Alteration>& changes) {
    for (const Alteration& change : changes) {
      std::memcpy(change.at, change.value.data(), change.value.size());
    }
  };
  apply(before);
  PoisonOutputs();
  ShowLife();
  const std::optional<CallTiming> called =
      options_.candidate->Call(GuestCache::kWarm, options_.call_timeout, [&] { apply(after); });
  if (!called.has_value()) return Step::kCandidateEnded;
  *early = false;
  *verdict = Compare(record);
  if (verdict->right) return Step::kDone;
  Step step = CheckTransform();
  if (step != Step::kDone) return step;
  apply(before);
  step = TakeInputsForBase(absl::StrCat(base_case_, " altered"));
  if (step != Step::kDone) return step;
  v1::Verification unused;
  if (!Compare(&unused).right) return step;
  // One that is merely inexact is so again.
  apply(after);
  step = TakeInputsForBase(base_case_);
  if (step == Step::kDone) step = Call(GuestCache::kLeave, nullptr);
  *early = step == Step::kDone && Compare(&unused).right;
  return step;
}

bool LoadedWork::InputsFinite() {
  for (size_t i = 0; i < input_count_; ++i) {
    if (FirstNotFinite(workload().tensors[i].dtype, options_.reference->Buffer(i)) >= 0) {
      return false;
    }
  }
  return true;
}

Step LoadedWork::CheckReferenceOutputs() {
  for (size_t i = input_count_; i < workload().tensors.size(); ++i) {
    const TensorShape& tensor = workload().tensors[i];
    const TensorShape shape =
        ReferenceShape(tensor, ProblemTensor(problem(), tensor.name).tolerance());
    const std::span<const std::byte> bytes = options_.reference->Buffer(i);
    const int64_t bad = FirstNotFinite(shape.dtype, bytes);
    if (bad < 0) continue;
    if (CountPoisoned(shape, bytes) > 0) {
      return FailReference(absl::StrCat("the reference left elements of ", tensor.name,
                                        " unwritten, ", ElementName(tensor, bad), " or later"));
    }
    if (InputsFinite()) {
      return FailReference(absl::StrCat("the reference wrote a value that is not finite to ",
                                        ElementName(tensor, bad), " for finite inputs"));
    }
  }
  return Step::kDone;
}

void LoadedWork::ExpectBase() {
  pending_.reset();
  for (size_t output = 0; output < want_.size(); ++output) {
    want_[output] = options_.reference->Buffer(input_count_ + output);
  }
}

std::span<const std::byte> LoadedWork::expected(size_t output) {
  if (!pending_.has_value() || !want_[output].empty()) return want_[output];
  if (transformed_.empty()) transformed_.resize(want_.size());
  const size_t tensor = input_count_ + output;
  const std::span<const std::byte> from = options_.reference->Buffer(tensor);
  transformed_[output].resize(from.size());
  pending_->ApplyToReference(tensor, from, transformed_[output]);
  want_[output] = transformed_[output];
  return want_[output];
}

// Where the output is right, without what it is expected to be ever lying in memory as a whole.
std::optional<OutputComparison> LoadedWork::CompareInPassing(size_t output) {
  const size_t index = output_index(output);
  const std::span<const std::byte> base = options_.reference->Buffer(index);
  const bool is_base = !pending_.has_value() && want_[output].data() == base.data();
  if (!is_base && !(pending_.has_value() && want_[output].empty())) return std::nullopt;
  const TensorShape& tensor = workload().tensors[index];
  const v1::TolerancePolicy& policy = ProblemTensor(problem(), tensor.name).tolerance();
  const bool rows = policy.kind() == v1::TolerancePolicy::SCALED && policy.scale_per_row();
  if (rows && !is_base && tensor.dims.back() * tensor.reference_element_bytes > kRowBytesMax) {
    return std::nullopt;
  }
  OutputScale whole;
  if (policy.kind() == v1::TolerancePolicy::SCALED && !rows) {
    base_scales_.resize(want_.size());
    std::optional<OutputScale>& known = base_scales_[output];
    if (!known.has_value()) known = ScaleOfOutput(tensor, base);
    whole = known->Times(is_base ? 1.0 : pending_->scale(index), tensor.dtype);
    if (!whole.ordinary) return std::nullopt;
  }
  const std::span<const std::byte> got = options_.candidate->Buffer(index);
  std::array<std::optional<StreamedComparison>, 2> comparisons;
  InHalves(tensor, rows, [&](int half, ElementRange range) {
    StreamedComparison& comparison =
        comparisons[half].emplace(policy, tensor, got, whole, range.begin);
    if (is_base) {
      comparison.Take(BytesOf(range, static_cast<size_t>(tensor.reference_element_bytes), base));
    } else {
      pending_->StreamReference(index, base, rows, range,
                                [&](std::span<const std::byte> part) { comparison.Take(part); });
    }
  });
  if (comparisons[1].has_value()) comparisons[0]->Add(*comparisons[1]);
  return comparisons[0]->Finish();
}

void LoadedWork::ExpectTransformed(const DrawnTransform& transform) {
  pending_ = transform;
  std::fill(want_.begin(), want_.end(), std::span<const std::byte>());
}

void LoadedWork::Present(const DrawnTransform* transform) {
  const bool plain = transform == nullptr || transform->is_identity();
  for (size_t i = 0; i < input_count_; ++i) {
    ShowLife();
    const std::span<const std::byte> from = options_.reference->Buffer(i);
    const std::span<std::byte> to = options_.candidate->Buffer(i);
    const TensorShape& tensor = workload().tensors[i];
    InHalves(tensor, false, [&](int /*half*/, ElementRange range) {
      if (plain) {
        const size_t element_bytes = DataTypeSize(tensor.dtype);
        const std::span<const std::byte> part = BytesOf(range, element_bytes, from);
        std::memcpy(BytesOf(range, element_bytes, to).data(), part.data(), part.size());
      } else {
        transform->ApplyToInput(i, from, to, range);
      }
    });
  }
  plain ? ExpectBase() : ExpectTransformed(*transform);
}

Step LoadedWork::CallUnchecked(GuestCache cache, CallTiming* timing) {
  ShowLife();
  // The changes of CallAltered take time between the guest's readiness and the start of the clock.
  // As many writes elsewhere keep a guest from telling such calls by that.
  const std::optional<CallTiming> got =
      options_.candidate->Call(cache, options_.call_timeout, [this] {
        for (Elsewhere& place : unchanged_) place.value = turns_;
        ++turns_;
      });
  if (!got.has_value() || options_.candidate->ended().has_value()) return Step::kCandidateEnded;
  if (timing != nullptr) *timing = *got;
  return Step::kDone;
}

Step LoadedWork::Call(GuestCache cache, CallTiming* timing) {
  PoisonOutputs();
  return CallUnchecked(cache, timing);
}

void LoadedWork::PoisonOutputs() {
  for (size_t i = input_count_; i < workload().tensors.size(); ++i) {
    const TensorShape& tensor = workload().tensors[i];
    InHalves(tensor, false, [&](int /*half*/, ElementRange range) {
      PoisonOutput(tensor, options_.candidate->Buffer(i), range);
    });
  }
}

Step LoadedWork::CallReferenceEmpty(GuestCache cache, CallTiming* timing) {
  const std::optional<CallTiming> got = options_.reference->CallEmpty(cache);
  if (!got.has_value()) return FailReference("the reference ended between calls");
  *timing = *got;
  return Step::kDone;
}

Step LoadedWork::CallCandidateEmpty(GuestCache cache, CallTiming* timing) {
  const std::optional<CallTiming> got = options_.candidate->CallEmpty(cache);
  if (!got.has_value()) return Step::kCandidateEnded;
  *timing = *got;
  return Step::kDone;
}

void LoadedWork::RecordMismatch(size_t tensor_index, const OutputComparison& comparison,
                                v1::Verification* record) const {
  if (record->has_first_mismatch()) return;
  const TensorShape& tensor = workload().tensors[tensor_index];
  v1::Mismatch& mismatch = *record->mutable_first_mismatch();
  mismatch.set_tensor(tensor.name);
  if (comparison.first_wrong < 0) return;
  for (const int64_t index : UnflattenIndex(tensor, comparison.first_wrong)) {
    mismatch.add_index(index);
  }
  mismatch.set_got(comparison.first_wrong_got);
  mismatch.set_want(comparison.first_wrong_want);
  mismatch.set_error(comparison.first_wrong_error);
}

OutputVerdict LoadedWork::Compare(v1::Verification* record) {
  OutputVerdict verdict;
  record->set_checked_call_count(record->checked_call_count() + 1);
  for (size_t output = 0; output < want_.size(); ++output) {
    const size_t index = input_count_ + output;
    ShowLife();
    const TensorShape& tensor = workload().tensors[index];
    const std::span<const std::byte> got = options_.candidate->Buffer(index);
    std::optional<OutputComparison> passing = CompareInPassing(output);
    if (!passing.has_value()) {
      passing = CompareOutput(ProblemTensor(problem(), tensor.name).tolerance(), tensor, got,
                              expected(output));
    }
    const OutputComparison& comparison = *passing;
    while (record->outputs_size() <= static_cast<int>(output)) record->add_outputs();
    v1::OutputCheck& check = *record->mutable_outputs(static_cast<int>(output));
    check.set_tensor(tensor.name);
    check.set_element_count(tensor.elements);
    check.set_relative_l2(std::max(check.relative_l2(), comparison.relative_l2));
    check.set_element_error_max(std::max(check.element_error_max(), comparison.element_error_max));
    check.set_wrong_count(std::max(check.wrong_count(), comparison.wrong_count));
    if (comparison.passed) continue;
    // A right element may hold the pattern by right (-1 in an integer output), so unwritten
    // elements are counted only where something is wrong.
    const int64_t unwritten = CountPoisoned(tensor, got);
    check.set_unwritten_count(std::max(check.unwritten_count(), unwritten));
    RecordMismatch(index, comparison, record);
    if (!verdict.right) continue;
    verdict.right = false;
    const bool first_is_nan = comparison.first_wrong >= 0 && std::isnan(comparison.first_wrong_got);
    const bool is_float = tensor.dtype != DataType::kI8 && tensor.dtype != DataType::kU8 &&
                          tensor.dtype != DataType::kI32;
    if (unwritten > 0 && (first_is_nan || !is_float)) {
      verdict.reason = "OUTPUT_NOT_WRITTEN";
    } else {
      verdict.reason = first_is_nan ? "NAN_OUTPUT" : "MISMATCH";
    }
  }
  return verdict;
}

bool LoadedWork::OutputsMatch(const DrawnTransform* transform) {
  transform != nullptr && !transform->is_identity() ? ExpectTransformed(*transform) : ExpectBase();
  v1::Verification unused;
  return Compare(&unused).right;
}

std::vector<std::vector<std::byte>> LoadedWork::CopyExpected() {
  std::vector<std::vector<std::byte>> copies;
  for (size_t output = 0; output < want_.size(); ++output) {
    const std::span<const std::byte> bytes = expected(output);
    copies.emplace_back(bytes.begin(), bytes.end());
  }
  return copies;
}

bool LoadedWork::OutputsMatch(const std::vector<std::vector<std::byte>>& expected) {
  const std::vector<std::span<const std::byte>> kept = want_;
  want_.assign(expected.begin(), expected.end());
  v1::Verification unused;
  const bool right = Compare(&unused).right;
  want_ = kept;
  return right;
}

std::vector<std::vector<std::byte>> LoadedWork::CopyOutputs() {
  std::vector<std::vector<std::byte>> outputs;
  for (size_t output = 0; output < want_.size(); ++output) {
    const std::span<const std::byte> bytes = options_.candidate->Buffer(output_index(output));
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

uint64_t LoadedWork::OutputsHash() const {
  uint64_t hash = 0;
  for (size_t i = input_count_; i < workload().tensors.size(); ++i) {
    const std::span<const std::byte> bytes = options_.candidate->Buffer(i);
    const size_t words = bytes.size() / 8;
    const size_t stride = std::max<size_t>(1, words / kHashedWordsMax);
    for (size_t word = 0; word < words; word += stride) {
      uint64_t value = 0;
      std::memcpy(&value, bytes.data() + 8 * word, 8);
      hash = (hash ^ value) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    uint64_t tail = bytes.size();
    std::memcpy(&tail, bytes.data() + 8 * words, bytes.size() % 8);
    hash = MixBits(hash ^ tail);
  }
  return hash;
}

void LoadedWork::RememberOutputs(std::string_view label) {
  if (seen_.size() < kRememberedMax) seen_.emplace_back(OutputsHash(), label);
}

std::string LoadedWork::RememberedLabel() const {
  const uint64_t hash = OutputsHash();
  for (const auto& [seen, label] : seen_) {
    if (seen == hash) return label;
  }
  return "";
}

std::string LoadedWork::InputFingerprint() {
  DigestBuilder digest;
  for (size_t i = 0; i < input_count_; ++i) {
    const std::span<const std::byte> bytes = options_.reference->Buffer(i);
    digest.Add(workload().tensors[i].name);
    digest.Add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return digest.Finish();
}

}  // namespace assay
