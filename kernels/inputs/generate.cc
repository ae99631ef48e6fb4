// Counter-based generation in chunks: random words first, then loops that the compiler vectorises.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/status.h"
#include "kernels/half.h"
#include "kernels/inputs/inputs.h"
#include "kernels/inputs/integer_range.h"
#include "kernels/inputs/structure.h"
#include "kernels/text.h"
#include "kernels/wide_loops.h"

namespace assay {
namespace {

constexpr size_t kChunk = kInputChunk;

enum class Fill { kNormal, kUniform, kInteger, kIntegerExtremes, kPacked, kPackedExtremes };

// How one tensor is filled in one case.
struct Plan {
  Fill fill = Fill::kNormal;
  DataType dtype = DataType::kF32;
  double offset = 0;  // mean or low
  double span = 1;    // standard deviation or high - low
  double top = 0;     // uniform: exclusive upper end
  double factor = 1;
  int64_t low = 0;  // integers
  int64_t high = 0;
  uint32_t code_max = 0;
  uint64_t key = 0;
  StructurePlan structure;
};

// In place of the index of a tensor: what a case draws for all of them.
constexpr size_t kAllTensors = ~size_t{0};

// A one-way step from the seed: who sees contents and inverts MixBits learns this key only.
uint64_t KeyOf(uint64_t seed, size_t tensor_index, const std::string& case_name) {
  const std::string digest = DigestBuilder()
                                 .Add("assay.input.v1")
                                 .Add(static_cast<int64_t>(seed))
                                 .Add(static_cast<int64_t>(tensor_index))
                                 .Add(case_name)
                                 .Finish();
  uint64_t key = 0;
  std::from_chars(digest.data(), digest.data() + 16, key, 16);
  return key;
}

// Natural logarithm of a positive normal float, relative error below 3e-6: own polynomial for
// log(1 + t) / t on [sqrt(1/2) - 1, sqrt(2) - 1], Chebyshev fit.
ASSAY_WIDE_BODY float FastLog(float value) {
  const int32_t bits = std::bit_cast<int32_t>(value);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // so that the mantissa is about 1
  const float t = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f;
  // Pairs first, so that the additions do not wait for each other.
  const float t2 = t * t;
  const float low = (-0.5000087739f * t + 1.000001027f) + (-0.2492033626f * t + 0.3331356329f) * t2;
  const float high = (-0.1857384013f * t + 0.2052544362f) + 0.1165780614f * t2;
  const float p = low + high * (t2 * t2);
  return p * t + static_cast<float>(exponent) * 0.6931471806f;
}

// Standard normal numbers by the inverse distribution function: with the tail probability p in
// (0, 1/2], x = 1 - 2p and w = -log(1 - x^2), the quantile is x times a smooth function of w, here
// two own Chebyshev fits (in w below 5, in sqrt(w) above). The variable is that of M. Giles,
// "Approximating the erfinv function" (2010). Absolute error below 5e-4 in the far tail and 2e-5
// elsewhere; the largest magnitude is 6.3.
ASSAY_WIDE_BODY void NormalBody(const uint32_t* words, float* out) {
  // Several loops, because a conditional value would keep one from being vectorised; over few
  // elements, because arrays that lie 4 KiB apart slow each other down.
  constexpr size_t kGroup = 64;
  for (size_t group = 0; group < kChunk; group += kGroup, words += kGroup, out += kGroup) {
    std::array<float, kGroup> x;
    std::array<float, kGroup> w;
    std::array<float, kGroup> root;
    for (size_t i = 0; i < kGroup; ++i) {
      const auto magnitude = static_cast<int32_t>(words[i] & 0x7fffffffu);
      const float tail = (static_cast<float>(magnitude) + 0.5f) * 0x1p-32f;
      x[i] = 1.0f - 2.0f * tail;
      w[i] = -FastLog(4.0f * tail * (1.0f - tail));
    }
    for (size_t i = 0; i < kGroup; ++i) root[i] = std::sqrt(std::fabs(w[i]));
    for (size_t i = 0; i < kGroup; ++i) {
      const float a = w[i] - 2.5f;
      const float a2 = a * a;
      const float p_low =
          (0.3488160135f * a + 2.123313467f) + (-0.001789861827f * a - 0.005906826954f) * a2;
      const float p_high = (-8.710544151e-7f * a + 0.000307661244f) + -4.53774073e-6f * a2;
      const float p = p_low + p_high * (a2 * a2);
      const float b = root[i] - 3.5f;
      const float b2 = b * b;
      const float q_low =
          (1.424526061f * b + 4.717176282f) + (-0.002272402462f * b + 0.003623730048f) * b2;
      const float q_high = -0.00181933072f * b + 0.003236745956f;
      const float q = q_low + q_high * (b2 * b2);
      const uint32_t central = w[i] < 5.0f ? 0xffffffffu : 0u;
      const uint32_t factor =
          (std::bit_cast<uint32_t>(p) & central) | (std::bit_cast<uint32_t>(q) & ~central);
      const float magnitude = x[i] * std::bit_cast<float>(factor);
      out[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (words[i] & 0x80000000u));
    }
  }
}

void NormalFromWords(const uint32_t* words, float* out) { DispatchWide<NormalBody>(words, out); }

// Float values for the 32-bit and 16-bit types.
void FloatChunk(const Plan& plan, const uint32_t* words, float* out) {
  const auto offset = static_cast<float>(plan.offset);
  const auto span = static_cast<float>(plan.span);
  const auto factor = static_cast<float>(plan.factor);
  if (plan.fill == Fill::kNormal) {
    NormalFromWords(words, out);
    for (size_t i = 0; i < kChunk; ++i) out[i] = (offset + span * out[i]) * factor;
    return;
  }
  const auto high = static_cast<float>(plan.top);
  const float top = std::nextafter(high, offset);
  for (size_t i = 0; i < kChunk; ++i) {
    const float unit = static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24f;
    out[i] = std::min(offset + span * unit, top) * factor;
  }
}

// Doubles with all their bits random: kernels that lose precision must show.
void DoubleChunk(const Plan& plan, const uint32_t* high, const uint32_t* low, double* out) {
  std::array<float, kChunk> normal;
  if (plan.fill == Fill::kNormal) {
    NormalFromWords(high, normal.data());
    for (size_t i = 0; i < kChunk; ++i) {
      // Up to half a unit in the last place of the float either way.
      const double fine = static_cast<double>(static_cast<int32_t>(low[i])) * 0x1p-55;
      const double z = static_cast<double>(normal[i]) * (1.0 + fine);
      out[i] = (plan.offset + plan.span * z) * plan.factor;
    }
    return;
  }
  const double top = std::nextafter(plan.top, plan.offset);
  for (size_t i = 0; i < kChunk; ++i) {
    // 31 and 22 bits; the sum is exact.
    const double unit = static_cast<double>(static_cast<int32_t>(high[i] >> 1)) * 0x1p-31 +
                        static_cast<double>(static_cast<int32_t>(low[i] >> 10)) * 0x1p-53;
    out[i] = std::min(plan.offset + plan.span * unit, top) * plan.factor;
  }
}

// Nominal values of a chunk, from its own words.
void DrawChunk(const Plan& plan, uint64_t chunk, float* out) {
  std::array<uint32_t, kChunk> words;
  FillWords(plan.key, chunk, words.data());
  FloatChunk(plan, words.data(), out);
}

void DrawChunk(const Plan& plan, uint64_t chunk, double* out) {
  std::array<uint32_t, kChunk> high;
  std::array<uint32_t, kChunk> low;
  FillWords(plan.key, 2 * chunk, high.data());
  FillWords(plan.key, 2 * chunk + 1, low.data());
  DoubleChunk(plan, high.data(), low.data(), out);
}

// Every element is the nominal value of its row's number.
template <typename T>
void ConstantRowsChunk(const Plan& plan, uint64_t chunk, T* out) {
  const auto quantum = static_cast<T>(plan.structure.quantum);
  const auto row_length = static_cast<uint64_t>(plan.structure.row);
  std::array<T, kChunk> of_rows;
  uint64_t row = chunk * kChunk / row_length;
  uint64_t left = (row + 1) * row_length - chunk * kChunk;  // of this row
  DrawChunk(plan, row / kChunk, of_rows.data());
  for (size_t i = 0; i < kChunk; ++i) {
    if (left == 0) {
      left = row_length;
      if (++row % kChunk == 0) DrawChunk(plan, row / kChunk, of_rows.data());
    }
    --left;
    out[i] = std::nearbyint(of_rows[row % kChunk] / quantum) * quantum + T{0};  // no -0
  }
}

void SortedChunk(const Plan& plan, uint64_t /*chunk*/, const uint32_t* words, float* out) {
  FloatChunk(plan, words, out);
}

void SortedChunk(const Plan& plan, uint64_t chunk, const uint32_t* words, double* out) {
  std::array<uint32_t, kChunk> low;
  FillWords(plan.key, chunk, low.data());
  DoubleChunk(plan, words, low.data(), out);
}

// Values of a chunk of a floating distribution, structure included.
template <typename T>
void RealChunk(const Plan& plan, uint64_t chunk, T* out) {
  std::array<uint32_t, kChunk> words;
  switch (plan.structure.kind) {
    case Structure::kConstantRows:
      ConstantRowsChunk(plan, chunk, out);
      return;
    case Structure::kExactIntegers:
      FillExactIntegers(plan.structure, chunk, out);
      return;
    case Structure::kSorted:
      FillSortedWords(plan.structure, chunk, words.data());
      if (plan.fill == Fill::kNormal) {
        // As NormalBody reads them: the lower half of [0, 1) has the sign.
        for (uint32_t& word : words) word = (word >> 31) == 0 ? word | 0x80000000u : ~word;
      }
      SortedChunk(plan, chunk, words.data(), out);
      return;
    default:
      DrawChunk(plan, chunk, out);
      Reshape(plan.structure, chunk, out);
  }
}

void IntegerChunk(const Plan& plan, const uint32_t* words, int32_t* out) {
  const auto low = static_cast<uint32_t>(plan.low);
  const auto high = static_cast<uint32_t>(plan.high);
  if (plan.fill == Fill::kIntegerExtremes) {
    for (size_t i = 0; i < kChunk; ++i) {
      out[i] = static_cast<int32_t>((words[i] & 0x80000000u) != 0 ? high : low);
    }
    return;
  }
  const uint64_t count = static_cast<uint64_t>(plan.high - plan.low) + 1;  // at most 2^32
  if (count > 0xffffffffu) {
    for (size_t i = 0; i < kChunk; ++i) out[i] = static_cast<int32_t>(words[i] + low);
    return;
  }
  const auto count32 = static_cast<uint32_t>(count);
  for (size_t i = 0; i < kChunk; ++i) {
    const auto draw = static_cast<uint32_t>((uint64_t{words[i]} * count32) >> 32);
    out[i] = static_cast<int32_t>(low + draw);
  }
}

void PackedChunk(const Plan& plan, const uint32_t* words, std::byte* out) {
  const uint32_t count = plan.code_max + 1;
  const bool extremes = plan.fill == Fill::kPackedExtremes;
  for (size_t i = 0; i < kChunk; ++i) {
    uint32_t packed = 0;
    for (uint32_t code = 0; code < 4; ++code) {
      const uint32_t byte = (words[i] >> (8 * code)) & 0xffu;
      const uint32_t value = extremes ? (byte >> 7) * plan.code_max : (byte * count) >> 8;
      packed |= value << (2 * code);
    }
    out[i] = static_cast<std::byte>(packed);
  }
}

template <typename To, typename From, typename Convert>
void Store(const From* from, std::byte* out, Convert convert) {
  std::array<To, kChunk> values;
  for (size_t i = 0; i < kChunk; ++i) values[i] = convert(from[i]);
  std::memcpy(out, values.data(), sizeof(values));
}

void StoreFloats(const float* values, DataType dtype, std::byte* out) {
  switch (dtype) {
    case DataType::kF16:
      Store<uint16_t>(values, out, [](float v) { return FloatToF16(v); });
      break;
    case DataType::kBF16:
      Store<uint16_t>(values, out, [](float v) { return FloatToBF16(v); });
      break;
    default:
      std::memcpy(out, values, kChunk * sizeof(float));
  }
}

void StoreIntegers(const int32_t* values, DataType dtype, std::byte* out) {
  std::array<float, kChunk> floats;
  switch (dtype) {
    case DataType::kI8:
    case DataType::kU8:
      Store<uint8_t>(values, out, [](int32_t v) { return static_cast<uint8_t>(v); });
      break;
    case DataType::kI32:
      std::memcpy(out, values, kChunk * sizeof(int32_t));
      break;
    case DataType::kF64:
      Store<double>(values, out, [](int32_t v) { return static_cast<double>(v); });
      break;
    default:
      for (size_t i = 0; i < kChunk; ++i) floats[i] = static_cast<float>(values[i]);
      StoreFloats(floats.data(), dtype, out);
  }
}

// Writes kChunk elements.
void FillChunk(const Plan& plan, uint64_t chunk, std::byte* out) {
  const bool real = plan.fill == Fill::kNormal || plan.fill == Fill::kUniform;
  if (real && plan.dtype == DataType::kF64) {
    std::array<double, kChunk> values;
    RealChunk(plan, chunk, values.data());
    std::memcpy(out, values.data(), sizeof(values));
    return;
  }
  if (real) {
    std::array<float, kChunk> values;
    RealChunk(plan, chunk, values.data());
    StoreFloats(values.data(), plan.dtype, out);
    return;
  }
  std::array<uint32_t, kChunk> words;
  FillWords(plan.key, chunk, words.data());
  if (plan.fill == Fill::kPacked || plan.fill == Fill::kPackedExtremes) {
    PackedChunk(plan, words.data(), out);
  } else {
    std::array<int32_t, kChunk> values;
    IntegerChunk(plan, words.data(), values.data());
    StoreIntegers(values.data(), plan.dtype, out);
  }
}

absl::StatusOr<double> FactorOf(const std::string& name) {
  if (name == "x3") return 3.0;
  if (name == "x0.01") return 0.01;
  if (name == "x-1") return -1.0;
  if (name == "x1" || name == "min" || name == "max" || name == "extremes" ||
      StructureByName(name) != Structure::kNone) {
    return 1.0;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input case ", Quoted(name), " is not one of the battery"));
}

absl::Status PlanDistribution(const v1::Distribution& distribution, const std::string& case_name,
                              const ValueMap& axes, Plan* plan) {
  switch (distribution.kind_case()) {
    case v1::Distribution::kNormal:
      plan->fill = Fill::kNormal;
      plan->offset = distribution.normal().mean();
      plan->span = distribution.normal().stddev();
      return absl::OkStatus();
    case v1::Distribution::kUniform:
      plan->fill = Fill::kUniform;
      plan->offset = distribution.uniform().low();
      plan->top = distribution.uniform().high();
      plan->span = plan->top - plan->offset;
      return absl::OkStatus();
    case v1::Distribution::kUniformInt: {
      ASSAY_ASSIGN_OR_RETURN(const IntegerRange range,
                             ResolveIntegerRange(distribution.uniform_int(), plan->dtype, axes));
      plan->fill = case_name == "extremes" ? Fill::kIntegerExtremes : Fill::kInteger;
      plan->low = case_name == "max" ? range.high : range.low;
      plan->high = case_name == "min" ? range.low : range.high;
      return absl::OkStatus();
    }
    case v1::Distribution::kPackedCodes2:
      plan->fill = case_name == "extremes" ? Fill::kPackedExtremes : Fill::kPacked;
      plan->code_max = static_cast<uint32_t>(distribution.packed_codes2().code_max());
      if (case_name == "min" || case_name == "max") {
        // Four equal codes a byte.
        plan->fill = Fill::kInteger;
        plan->low = plan->high = case_name == "min" ? 0 : plan->code_max * 0x55;
      }
      return absl::OkStatus();
    case v1::Distribution::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the tensor has no distribution");
}

absl::StatusOr<Plan> MakePlan(const v1::Problem& problem, const ResolvedWorkload& workload,
                              size_t tensor_index, const InputCaseSpec& input_case, uint64_t seed) {
  if (tensor_index >= workload.tensors.size() || workload.tensors[tensor_index].is_output) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor_index, " is not an input of the workload"));
  }
  const TensorShape& shape = workload.tensors[tensor_index];
  const v1::Tensor* tensor = nullptr;
  for (const v1::Tensor& candidate : problem.tensors()) {
    if (candidate.name() == shape.name) tensor = &candidate;
  }
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the problem has no tensor ", Quoted(shape.name)));
  }
  Plan plan;
  plan.dtype = shape.dtype;
  plan.key = KeyOf(seed, tensor_index, input_case.name);
  if (input_case.problem_case >= problem.input_cases_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the problem has no input case ", Quoted(input_case.name)));
  }
  if (input_case.problem_case < 0) {
    ASSAY_ASSIGN_OR_RETURN(const double factor, FactorOf(input_case.name));
    plan.factor = tensor->scalable() ? factor : 1.0;
    ASSAY_RETURN_IF_ERROR(
        PlanDistribution(tensor->distribution(), input_case.name, workload.axes, &plan));
    const Structure structure = StructureByName(input_case.name);
    if (structure != Structure::kNone) {
      plan.structure =
          PlanStructure(problem, workload, tensor_index, structure,
                        KeyOf(seed, kAllTensors, input_case.name), plan.key, plan.span);
    }
    return plan;
  }
  const v1::Distribution* distribution = &tensor->distribution();
  for (const auto& entry : problem.input_cases(input_case.problem_case).overrides()) {
    if (entry.tensor() == shape.name) distribution = &entry.distribution();
  }
  ASSAY_RETURN_IF_ERROR(PlanDistribution(*distribution, "", workload.axes, &plan));
  return plan;
}

}  // namespace

absl::Status GenerateInputPart(const v1::Problem& problem, const ResolvedWorkload& workload,
                               size_t tensor_index, const InputCaseSpec& input_case, uint64_t seed,
                               int64_t first_element, std::span<std::byte> out) {
  ASSAY_ASSIGN_OR_RETURN(const Plan plan,
                         MakePlan(problem, workload, tensor_index, input_case, seed));
  const size_t size = DataTypeSize(plan.dtype);
  const int64_t elements = workload.tensors[tensor_index].elements;
  const auto count = static_cast<int64_t>(out.size() / size);
  if (out.size() % size != 0 || first_element < 0 || first_element > elements ||
      count > elements - first_element) {
    return absl::InvalidArgumentError(absl::StrCat(
        out.size(), " bytes from element ", first_element, " are not inside of input '",
        workload.tensors[tensor_index].name, "' with ", elements, " elements of ", size, " bytes"));
  }
  auto at = static_cast<uint64_t>(first_element);
  const uint64_t end = at + static_cast<uint64_t>(count);
  std::byte* to = out.data();
  while (at < end) {
    const uint64_t chunk = at / kChunk;
    const size_t skip = at % kChunk;
    const size_t take = std::min<uint64_t>(kChunk - skip, end - at);
    if (take == kChunk) {
      FillChunk(plan, chunk, to);
    } else {
      std::array<std::byte, kChunk * sizeof(double)> whole;
      FillChunk(plan, chunk, whole.data());
      std::memcpy(to, whole.data() + skip * size, take * size);
    }
    at += take;
    to += take * size;
  }
  return absl::OkStatus();
}

absl::Status GenerateInput(const v1::Problem& problem, const ResolvedWorkload& workload,
                           size_t tensor_index, const InputCaseSpec& input_case, uint64_t seed,
                           std::span<std::byte> out) {
  if (tensor_index < workload.tensors.size() &&
      static_cast<int64_t>(out.size()) != workload.tensors[tensor_index].bytes) {
    return absl::InvalidArgumentError(absl::StrCat("input '", workload.tensors[tensor_index].name,
                                                   "' has ", workload.tensors[tensor_index].bytes,
                                                   " bytes, not ", out.size()));
  }
  return GenerateInputPart(problem, workload, tensor_index, input_case, seed, 0, out);
}

}  // namespace assay
