#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/status.h"
#include "kernels/half.h"
#include "kernels/inputs/inputs.h"
#include "kernels/problem_validate.h"
#include "kernels/streaming_stores.h"
#include "kernels/text.h"
#include "kernels/wide_loops.h"

namespace assay {
namespace {

// Longer dimensions with elements of at most kShortElementBytes are permuted by blocks.
constexpr int64_t kElementWiseMax = 4096;
constexpr int64_t kShortElementBytes = 32;
// Longer dimensions are permuted by blocks whatever their elements, to bound the index.
constexpr int64_t kIndexMax = int64_t{1} << 22;
constexpr int64_t kBlocksMax = 64;
constexpr int64_t kBlockElementsMin = 1024;
// In tensors of more bytes, short dimensions with short elements go by small blocks too: element by
// element a permutation takes longer than many a kernel.
constexpr int64_t kLargeTensorBytes = int64_t{4} << 20;
constexpr int64_t kSmallBlockElements = 32;
constexpr size_t kLineBytes = 64;
constexpr size_t kPrefetchedBytesMax = 32 << 10;  // of what is copied next

// One stream of random numbers for each transform; one-way, as for inputs.
uint64_t TransformSeed(uint64_t seed, int transform) {
  const std::string digest = DigestBuilder()
                                 .Add("assay.transform.v1")
                                 .Add(static_cast<int64_t>(seed))
                                 .Add(int64_t{transform})
                                 .Finish();
  uint64_t out = 0;
  std::from_chars(digest.data(), digest.data() + 16, out, 16);
  return out;
}

int FindTensor(const std::vector<TensorShape>& tensors, const std::string& name) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Bytes of everything inside of one index of `dimension`.
int64_t InnerBytes(const TensorShape& tensor, size_t dimension) {
  int64_t bytes = static_cast<int64_t>(DataTypeSize(tensor.dtype));
  for (size_t d = dimension + 1; d < tensor.dims.size(); ++d) bytes *= tensor.dims[d];
  return bytes;
}

template <typename T>
void Shuffle(std::vector<T>& items, Random& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.Below(i)]);
}

template <typename T>
ASSAY_WIDE_BODY void ScaleCopyBody(const std::byte* from, std::byte* to, size_t bytes, T scale) {
  for (size_t i = 0; i < bytes; i += sizeof(T)) {
    T value;
    std::memcpy(&value, from + i, sizeof(T));
    value *= scale;
    std::memcpy(to + i, &value, sizeof(T));
  }
}

template <typename T>
void ScaleCopy(const std::byte* from, std::byte* to, size_t bytes, T scale) {
  DispatchWide<ScaleCopyBody<T>>(from, to, bytes, scale);
}

void ScaleCopyBF16(const std::byte* from, std::byte* to, size_t bytes, float scale) {
  for (size_t i = 0; i < bytes; i += 2) {
    uint16_t value;
    std::memcpy(&value, from + i, 2);
    value = FloatToBF16(BF16ToFloat(value) * scale);
    std::memcpy(to + i, &value, 2);
  }
}

template <typename T>
void Gather(const std::byte* from, std::byte* to, std::span<const int32_t> index) {
  for (size_t i = 0; i < index.size(); ++i) {
    std::memcpy(to + i * sizeof(T), from + static_cast<size_t>(index[i]) * sizeof(T), sizeof(T));
  }
}

// Where what was copied goes: one place after the other.
class WholeTarget {
 public:
  explicit WholeTarget(std::byte* to) : to_(to) {}
  // Room for `wanted` bytes, or for as many as there are.
  std::span<std::byte> Take(size_t wanted) {
    const std::span<std::byte> room(to_, wanted);
    to_ += wanted;
    return room;
  }
  static void Write(const std::byte* from, std::span<std::byte> room) {
    std::memcpy(room.data(), from, room.size());
  }

 private:
  std::byte* to_;
};

// The same past the caches.
class StreamedTarget : public WholeTarget {
 public:
  using WholeTarget::WholeTarget;
  static void Write(const std::byte* from, std::span<std::byte> room) {
    StreamCopy({from, room.size()}, room.data());
  }
};

// A part that is handed on and filled again.
class PartTarget {
 public:
  // `indivisible` bytes and multiples of them are never cut; a part is at least that large.
  PartTarget(size_t indivisible, const DrawnTransform::TakePart& take)
      : part_(std::max(kPartBytes / indivisible, size_t{1}) * indivisible), take_(take) {}
  std::span<std::byte> Take(size_t wanted) {
    if (filled_ == part_.size()) Flush();
    const std::span<std::byte> room =
        std::span(part_).subspan(filled_, std::min(wanted, part_.size() - filled_));
    filled_ += room.size();
    return room;
  }
  static void Write(const std::byte* from, std::span<std::byte> room) {
    WholeTarget::Write(from, room);
  }
  void Flush() {
    if (filled_ > 0) take_(std::span(part_).first(filled_));
    filled_ = 0;
  }

 private:
  static constexpr size_t kPartBytes = 16 << 10;  // stays in a core's first cache

  std::vector<std::byte> part_;
  size_t filled_ = 0;
  const DrawnTransform::TakePart& take_;
};

}  // namespace

// Copies one tensor through its maps. Dimensions after the last permuted one are one block.
class TransformApplier {
 public:
  TransformApplier(const TensorShape& tensor, const DrawnTransform::TensorAction& action,
                   size_t element_bytes, bool as_double)
      : tensor_(tensor), action_(action), as_double_(as_double) {
    depth_ = tensor.dims.size();
    while (depth_ > 0 && action.maps[depth_ - 1].identity()) --depth_;
    stride_.resize(tensor.dims.size() + 1);
    stride_[tensor.dims.size()] = element_bytes;
    for (size_t d = tensor.dims.size(); d > 0; --d) {
      stride_[d - 1] = stride_[d] * static_cast<size_t>(tensor.dims[d - 1]);
    }
  }

  template <typename Target>
  void Run(const std::byte* from, ElementRange range, Target& to) const {
    const auto begin = static_cast<size_t>(range.begin) * stride_.back();
    const auto end = static_cast<size_t>(range.end) * stride_.back();
    if (depth_ == 0) return Copy(from + begin, end - begin, to);
    const size_t d = FirstLongDimension(tensor_);
    Walk(d, begin / stride_[d + 1], end / stride_[d + 1], from, nullptr, to);
  }

  // Bytes that a target must not cut: an element, or a row of the last dimension where rows are
  // asked for or gathered.
  size_t Indivisible(bool rows) const {
    const size_t dims = tensor_.dims.size();
    const bool gathers = dims > 0 && !action_.maps[dims - 1].index.empty();
    return dims > 0 && (rows || gathers) ? stride_[dims - 1] : stride_[dims];
  }

 private:
  // The indices [first, end) of dimension d. Recursion at most kDimensionsMax deep. stride_[d + 1]
  // is the bytes of one index. `next`: what is walked after this, fetched meanwhile, since no
  // processor foresees a permutation; may be null.
  template <typename Target>
  void Walk(size_t d, size_t first, size_t end, const std::byte* from, const std::byte* next,
            Target& to) const {
    const DrawnTransform::DimensionMap& map = action_.maps[d];
    const size_t bytes = stride_[d + 1];
    if (!map.index.empty()) {
      const std::span<const int32_t> index = std::span(map.index).subspan(first, end - first);
      if (d + 1 == tensor_.dims.size()) return GatherElements(index, from, to);
      for (size_t i = 0; i < index.size(); ++i) {
        const bool ends = i + 1 == index.size();
        Descend(d, from + static_cast<size_t>(index[i]) * bytes,
                ends ? nullptr : from + static_cast<size_t>(index[i + 1]) * bytes, to);
      }
      return;
    }
    if (map.identity()) {
      from += first * bytes;
      for (size_t i = first; i < end; ++i, from += bytes) {
        Descend(d, from, i + 1 == end ? nullptr : from + bytes, to);
      }
      return;
    }
    size_t at = 0;  // index at which the run begins
    for (const auto& run : map.runs) {
      const size_t run_begin = std::max(at, first);
      const size_t run_end = std::min(at + static_cast<size_t>(run.length), end);
      if (run_begin < run_end) {
        WalkRun(d, run_end - run_begin,
                from + (static_cast<size_t>(run.from) + run_begin - at) * bytes, &next, to);
      }
      at += static_cast<size_t>(run.length);
    }
  }

  // So many neighbours along dimension d.
  template <typename Target>
  void WalkRun(size_t d, size_t length, const std::byte* from, const std::byte** next,
               Target& to) const {
    const size_t bytes = stride_[d + 1];
    if (d + 1 < depth_) {
      for (size_t i = 0; i < length; ++i, from += bytes) {
        WalkWhole(d + 1, from, i + 1 == length ? nullptr : from + bytes, to);
      }
      return;
    }
    if (*next != nullptr) {
      Prefetch(*next, length * bytes);
      *next += length * bytes;
    }
    Copy(from, length * bytes, to);
  }

  template <typename Target>
  void WalkWhole(size_t d, const std::byte* from, const std::byte* next, Target& to) const {
    Walk(d, 0, static_cast<size_t>(tensor_.dims[d]), from, next, to);
  }

  static void Prefetch(const std::byte* from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + at);
  }

  // Into one index of dimension d.
  template <typename Target>
  void Descend(size_t d, const std::byte* from, const std::byte* next, Target& to) const {
    if (d + 1 == depth_) {
      Copy(from, stride_[d + 1], to);
    } else {
      WalkWhole(d + 1, from, stride_[d + 1] <= kPrefetchedBytesMax ? next : nullptr, to);
    }
  }

  // Elements of one row, which no target cuts.
  template <typename Target>
  void GatherElements(std::span<const int32_t> index, const std::byte* from, Target& to) const {
    const size_t element_bytes = stride_.back();
    std::byte* const room = to.Take(index.size() * element_bytes).data();
    if (element_bytes == 1) Gather<uint8_t>(from, room, index);
    if (element_bytes == 2) Gather<uint16_t>(from, room, index);
    if (element_bytes == 4) Gather<uint32_t>(from, room, index);
    if (element_bytes == 8) Gather<uint64_t>(from, room, index);
    if (action_.scale != 1.0) Scale(room, room, index.size() * element_bytes);
  }

  template <typename Target>
  void Copy(const std::byte* from, size_t bytes, Target& to) const {
    while (bytes > 0) {
      const std::span<std::byte> room = to.Take(bytes);
      if (action_.scale == 1.0) {
        Target::Write(from, room);
      } else {
        Scale(from, room.data(), room.size());
      }
      from += room.size();
      bytes -= room.size();
    }
  }

  // `from` and `to` are apart or the same.
  void Scale(const std::byte* from, std::byte* to, size_t bytes) const {
    if (as_double_ || tensor_.dtype == DataType::kF64) {
      ScaleCopy<double>(from, to, bytes, action_.scale);
    } else if (tensor_.dtype == DataType::kF32) {
      ScaleCopy<float>(from, to, bytes, static_cast<float>(action_.scale));
    } else {
      ScaleCopyBF16(from, to, bytes, static_cast<float>(action_.scale));
    }
  }

  const TensorShape& tensor_;
  const DrawnTransform::TensorAction& action_;
  const bool as_double_;
  size_t depth_ = 0;  // dimensions up to the last permuted one
  std::vector<size_t> stride_;
};

DrawnTransform::DimensionMap DrawnTransform::DrawMap(int64_t size, bool element_wise, bool large,
                                                     uint64_t seed) {
  DimensionMap map;
  if (size <= 1) return map;
  Random random(seed);
  const bool by_small_blocks = element_wise && large && size >= 4 * kSmallBlockElements;
  const bool by_blocks =
      size > kIndexMax || (element_wise && size > kElementWiseMax) || by_small_blocks;
  if (!by_blocks) {
    map.index.resize(static_cast<size_t>(size));
    std::iota(map.index.begin(), map.index.end(), 0);
    Shuffle(map.index, random);
    return map;
  }
  const auto rotation = static_cast<int64_t>(random.Below(static_cast<uint64_t>(size)));
  const bool by_large_blocks = size > kElementWiseMax;
  const int64_t blocks = by_large_blocks
                             ? std::clamp<int64_t>(size / kBlockElementsMin, 1, kBlocksMax)
                             : size / kSmallBlockElements;
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  Shuffle(order, random);
  const auto boundary = [&](int64_t block) {
    return size / blocks * block + std::min(block, size % blocks);
  };
  for (const int64_t block : order) {
    const int64_t length = boundary(block + 1) - boundary(block);
    const int64_t from = (boundary(block) + rotation) % size;
    const int64_t before_wrap = std::min(length, size - from);
    map.runs.push_back({from, before_wrap});
    if (before_wrap < length) map.runs.push_back({0, length - before_wrap});
  }
  return map;
}

absl::StatusOr<DrawnTransform> DrawnTransform::Draw(const v1::Problem& problem,
                                                    const ResolvedWorkload& workload,
                                                    uint64_t seed) {
  ASSAY_RETURN_IF_ERROR(validate::CheckTransformSizes(problem, workload));
  DrawnTransform out;
  out.tensors_ = workload.tensors;
  out.actions_.resize(out.tensors_.size());
  for (size_t i = 0; i < out.tensors_.size(); ++i) {
    out.actions_[i].maps.resize(out.tensors_[i].dims.size());
  }
  for (int t = 0; t < problem.transforms_size(); ++t) {
    const v1::Transform& transform = problem.transforms(t);
    Random random(TransformSeed(seed, t));
    if (transform.has_permutation()) {
      bool element_wise = false;
      bool large = false;
      std::vector<DimensionMap*> targets;
      int64_t size = 0;
      for (const auto* listed :
           {&transform.permutation().inputs(), &transform.permutation().outputs()}) {
        for (const auto& entry : *listed) {
          const int tensor = FindTensor(out.tensors_, entry.tensor());  // checked above
          const auto d = static_cast<size_t>(entry.dimension());
          const TensorShape& shape = out.tensors_[static_cast<size_t>(tensor)];
          size = shape.dims[d];
          element_wise = element_wise || InnerBytes(shape, d) <= kShortElementBytes;
          large = large || shape.bytes > kLargeTensorBytes;
          targets.push_back(&out.actions_[static_cast<size_t>(tensor)].maps[d]);
        }
      }
      const DimensionMap map = DrawMap(size, element_wise, large, random());
      for (DimensionMap* target : targets) *target = map;
      continue;
    }
    const auto& scale = transform.power_of_two_scale();
    const int reach = scale.exponent_max();
    const int exponent =
        static_cast<int>(random.Below(2 * static_cast<uint64_t>(reach) + 1)) - reach;
    const bool negative = scale.signed_() && random.Chance(0.5);
    for (const auto* listed : {&scale.inputs(), &scale.outputs()}) {
      for (const auto& entry : *listed) {
        const int tensor = FindTensor(out.tensors_, entry.tensor());
        if (tensor < 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("transforms[", t, "] names no tensor: ", Quoted(entry.tensor())));
        }
        const double factor = std::scalbn(1.0, exponent * entry.power());
        const bool flip = negative && entry.power() % 2 != 0;
        out.actions_[static_cast<size_t>(tensor)].scale *= flip ? -factor : factor;
      }
    }
  }
  return out;
}

void DrawnTransform::ApplyToInput(size_t tensor_index, std::span<const std::byte> from,
                                  std::span<std::byte> to, ElementRange range) const {
  const TensorShape& tensor = tensors_[tensor_index];
  const size_t element_bytes = DataTypeSize(tensor.dtype);
  const TransformApplier applier(tensor, actions_[tensor_index], element_bytes, false);
  std::byte* const start = to.data() + static_cast<size_t>(range.begin) * element_bytes;
  if (!ExceedsCaches(to.size())) {
    WholeTarget target(start);
    return applier.Run(from.data(), range, target);
  }
  StreamedTarget target(start);
  applier.Run(from.data(), range, target);
  EndStreaming();
}

void DrawnTransform::ApplyToReference(size_t tensor_index, std::span<const std::byte> from,
                                      std::span<std::byte> to) const {
  const TensorShape& tensor = tensors_[tensor_index];
  const auto element_bytes = static_cast<size_t>(tensor.reference_element_bytes);
  WholeTarget target(to.data());
  TransformApplier(tensor, actions_[tensor_index], element_bytes, element_bytes == 8)
      .Run(from.data(), AllElements(tensor), target);
}

void DrawnTransform::StreamReference(size_t tensor_index, std::span<const std::byte> from,
                                     bool rows, ElementRange range, const TakePart& take) const {
  const TensorShape& tensor = tensors_[tensor_index];
  const auto element_bytes = static_cast<size_t>(tensor.reference_element_bytes);
  const TransformApplier applier(tensor, actions_[tensor_index], element_bytes, element_bytes == 8);
  PartTarget target(applier.Indivisible(rows), take);
  applier.Run(from.data(), range, target);
  target.Flush();
}

bool DrawnTransform::is_identity() const {
  return std::all_of(actions_.begin(), actions_.end(), [](const TensorAction& action) {
    return action.scale == 1.0 &&
           std::all_of(action.maps.begin(), action.maps.end(),
                       [](const DimensionMap& map) { return map.identity(); });
  });
}

}  // namespace assay
