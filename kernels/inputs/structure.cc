#include "kernels/inputs/structure.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "assay/v1/problem.pb.h"
#include "base/random.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "mixed", "heavy_tail", "constant_rows", "one_hot", "sorted", "cancelling", "exact_integers"};

// The ends of what the plain battery shows to be within honest kernels' reach, and little below the
// nominal size, so that the unit of an error (the root mean square of the results) stays near.
constexpr double kLarge = 3;
constexpr double kSmall = 0.125;
constexpr uint32_t kOneIn32 = 0x08000000;  // a random word is below it once in 32
constexpr uint32_t kThreeQuarters = 0xc0000000;
constexpr int64_t kRun = 64;  // elements that count as a row of a vector
constexpr double kQuantaOfSpan = 4;

uint64_t RowBits(uint64_t key, int64_t row) {
  return MixBits(key + (static_cast<uint64_t>(row) + 1) * kGoldenGamma);
}

int SignificantBits(DataType dtype) {
  switch (dtype) {
    case DataType::kF16:
      return 11;
    case DataType::kBF16:
      return 8;
    case DataType::kF64:
      return 30;  // enough to show f32, and an int64_t holds it
    default:
      return 24;
  }
}

const v1::Tensor* FindTensor(const v1::Problem& problem, std::string_view name) {
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

bool IsScalable(const v1::Problem& problem, const TensorShape& shape) {
  const v1::Tensor* tensor = FindTensor(problem, shape.name);
  return tensor != nullptr && !shape.is_output && tensor->scalable();
}

std::vector<size_t> ScalableInputs(const v1::Problem& problem, const ResolvedWorkload& workload) {
  std::vector<size_t> out;
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    if (IsScalable(problem, workload.tensors[i])) out.push_back(i);
  }
  return out;
}

// Bits of the integers of this input. All sums are exact: a sum of K products of w bits together
// has a standard deviation below 2^w sqrt(K), and eight of those stay below 2^p, where p are the
// bits of the narrowest output: w = p - 3 - log2(K) / 2.
int ExactBits(const v1::Problem& problem, const ResolvedWorkload& workload, DataType dtype,
              size_t inputs, bool is_wide) {
  int precision = 53;
  for (const TensorShape& tensor : workload.tensors) {
    if (tensor.is_output && tensor.dtype != DataType::kF64) precision = 24;
  }
  const auto terms = static_cast<uint64_t>(ReductionLengthMax(problem, workload));
  const int budget = precision - 3 - (std::bit_width(terms - 1) + 1) / 2;
  const int others = static_cast<int>(inputs) - 1;
  const int wide = std::clamp(budget - others, 1, SignificantBits(dtype));
  if (is_wide || others == 0) return wide;
  return std::clamp((budget - wide) / others, 1, SignificantBits(dtype));
}

int64_t HotElement(const StructurePlan& plan, int64_t row) {
  const int64_t start = row * plan.row;
  const int64_t size = std::max<int64_t>(1, std::min(plan.row, plan.elements - start));
  return start + static_cast<int64_t>(RowBits(plan.key, row) % static_cast<uint64_t>(size));
}

template <typename T>
void ReshapeChunk(const StructurePlan& plan, uint64_t chunk, T* values) {
  const auto first = static_cast<int64_t>(chunk * kInputChunk);
  std::array<uint32_t, kInputChunk> words;
  switch (plan.kind) {
    case Structure::kMixed:
      for (size_t i = 0; i < kInputChunk; ++i) {
        const bool is_second = first + static_cast<int64_t>(i) >= plan.boundary;
        if (is_second != plan.is_reversed) values[i] *= static_cast<T>(kLarge);
      }
      return;
    case Structure::kHeavyTail:
      FillWords(plan.key, chunk, words.data());
      for (size_t i = 0; i < kInputChunk; ++i) {
        values[i] *= static_cast<T>(words[i] < kOneIn32 ? kLarge : kSmall);
      }
      return;
    case Structure::kOneHot: {
      int64_t row = first / plan.row;
      int64_t hot = HotElement(plan, row);
      for (size_t i = 0; i < kInputChunk; ++i) {
        const int64_t at = first + static_cast<int64_t>(i);
        if (at == (row + 1) * plan.row) hot = HotElement(plan, ++row);
        if (at != hot) values[i] = 0;
      }
      return;
    }
    case Structure::kCancelling:
      FillWords(plan.key, chunk, words.data());
      for (size_t i = 0; i < kInputChunk; i += 2) {
        const bool is_large = words[i] < kThreeQuarters;
        values[i] *= static_cast<T>(is_large ? kLarge : kSmall);
        values[i + 1] = is_large ? -values[i] : values[i + 1] * static_cast<T>(kSmall);
      }
      return;
    default:
      return;
  }
}

template <typename T>
void ExactIntegerChunk(const StructurePlan& plan, uint64_t chunk, T* values) {
  std::array<uint32_t, kInputChunk> words;
  FillWords(plan.key, chunk, words.data());
  // Odd, with the highest bit set: whoever keeps fewer bits changes every one of them.
  const uint32_t ends = plan.bits == 1 ? 1 : (uint32_t{1} << (plan.bits - 1)) | 1;
  const uint32_t mask = (uint32_t{1} << plan.bits) - 1;
  for (size_t i = 0; i < kInputChunk; ++i) {
    const auto magnitude = static_cast<T>(static_cast<int32_t>(((words[i] >> 1) & mask) | ends));
    values[i] = (words[i] & 1) != 0 ? -magnitude : magnitude;
  }
}

}  // namespace

void FillWords(uint64_t key, uint64_t chunk, uint32_t* words) {
  const uint64_t base = key + chunk * (kInputChunk / 2) * kGoldenGamma;
  for (size_t i = 0; i < kInputChunk / 2; ++i) {
    const uint64_t bits = MixBits(base + (i + 1) * kGoldenGamma);
    words[2 * i] = static_cast<uint32_t>(bits);
    words[2 * i + 1] = static_cast<uint32_t>(bits >> 32);
  }
}

std::span<const std::string_view> StructureNames() { return kNames; }

Structure StructureByName(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return Structure::kNone;
  return static_cast<Structure>(found - kNames.begin() + 1);
}

int64_t ReductionLengthMax(const v1::Problem& problem, const ResolvedWorkload& workload) {
  int64_t longest = 1;
  for (const TensorShape& shape : workload.tensors) {
    if (!IsScalable(problem, shape)) continue;
    int64_t terms = shape.elements;
    for (const v1::Transform& transform : problem.transforms()) {
      if (transform.permutation().outputs().empty()) continue;
      for (const auto& entry : transform.permutation().inputs()) {
        if (entry.tensor() == shape.name) {
          terms /= shape.dims[static_cast<size_t>(entry.dimension())];
        }
      }
    }
    longest = std::max(longest, terms);
  }
  return longest;
}

StructurePlan PlanStructure(const v1::Problem& problem, const ResolvedWorkload& workload,
                            size_t tensor_index, Structure structure, uint64_t case_key,
                            uint64_t tensor_key, double span) {
  const TensorShape& shape = workload.tensors[tensor_index];
  StructurePlan plan;
  if (!IsScalable(problem, shape)) return plan;
  plan.kind = structure;
  // Not the key of the nominal values.
  plan.key = MixBits(tensor_key ^ kGoldenGamma);
  plan.elements = shape.elements;
  plan.is_reversed = (MixBits(plan.key) & 1) != 0;
  plan.row = shape.dims.back();
  if (shape.dims.size() == 1 && structure != Structure::kSorted)
    plan.row = std::min(plan.row, kRun);
  const std::vector<size_t> inputs = ScalableInputs(problem, workload);
  const bool is_drawn = inputs[MixBits(case_key) % inputs.size()] == tensor_index;
  switch (structure) {
    case Structure::kMixed:
      plan.boundary =
          1 + static_cast<int64_t>(RowBits(plan.key, 0) %
                                   static_cast<uint64_t>(std::max<int64_t>(1, plan.elements - 1)));
      break;
    case Structure::kOneHot:
    case Structure::kSorted:
      if (!is_drawn) plan.kind = Structure::kNone;
      break;
    case Structure::kConstantRows:
      if (span > 0) plan.quantum = std::ldexp(1.0, std::ilogb(span)) / kQuantaOfSpan;
      break;
    case Structure::kExactIntegers:
      plan.bits = ExactBits(problem, workload, shape.dtype, inputs.size(), is_drawn);
      break;
    default:
      break;
  }
  return plan;
}

void Reshape(const StructurePlan& plan, uint64_t chunk, float* values) {
  ReshapeChunk(plan, chunk, values);
}
void Reshape(const StructurePlan& plan, uint64_t chunk, double* values) {
  ReshapeChunk(plan, chunk, values);
}

void FillExactIntegers(const StructurePlan& plan, uint64_t chunk, float* values) {
  ExactIntegerChunk(plan, chunk, values);
}
void FillExactIntegers(const StructurePlan& plan, uint64_t chunk, double* values) {
  ExactIntegerChunk(plan, chunk, values);
}

void FillSortedWords(const StructurePlan& plan, uint64_t chunk, uint32_t* words) {
  FillWords(plan.key, chunk, words);
  const double scale = 0x1p32 / static_cast<double>(plan.row);
  int64_t at = static_cast<int64_t>(chunk * kInputChunk) % plan.row;
  for (size_t i = 0; i < kInputChunk; ++i) {
    // Element `at` is drawn from its own of as many equal parts of [0, 1).
    const double part = static_cast<double>(at) + static_cast<double>(words[i]) * 0x1p-32;
    const auto fraction = static_cast<uint32_t>(std::min(part * scale, 0xffffffffp0));
    words[i] = plan.is_reversed ? ~fraction : fraction;
    if (++at == plan.row) at = 0;
  }
}

}  // namespace assay
