// All valid configurations of a tuning space: counted, numbered, drawn and looked around in without
// a list of them.
//
// The space is kept as a layered graph, a multi-valued decision diagram: one layer for each
// parameter, an edge for each value that may follow, and one node for all beginnings after which
// the same ends are valid, as far as the constraints tell: two beginnings share a node when the
// values that open constraints still look at are the same. A space of 10^9 combinations takes
// as many nodes as its constraints make it, often some thousands. Layers are in an order of their
// own, which keeps few values open at a time; nobody outside sees it.
#ifndef ASSAY_TUNING_SPACE_TUNING_SPACE_H_
#define ASSAY_TUNING_SPACE_TUNING_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "kernels/expression/expression.h"

namespace assay {

struct SpaceParameter {
  std::string name;
  std::vector<int64_t> values;  // at least one, none twice
};

// Which value each parameter takes: positions in SpaceParameter::values, in the space's order.
using SpacePoint = std::vector<uint16_t>;

// Immutable, thread-safe.
class TuningSpace {
 public:
  // `constraints` are expressions over parameters and `constants` (axes, limits of a device); all
  // must hold. Where one cannot be evaluated, as with a division by zero, it does not hold.
  // INVALID_ARGUMENT for names that are unknown or declared twice, values that are missing, given
  // twice or too many, and with reason SPACE_EMPTY when nothing is valid; RESOURCE_EXHAUSTED with
  // reason SPACE_TOO_LARGE when the constraints hang together so much that the graph gets too
  // large, or 64 bits cannot number what is valid.
  static absl::StatusOr<TuningSpace> Open(std::vector<SpaceParameter> parameters,
                                          const std::vector<std::string>& constraints,
                                          const ValueMap& constants);

  const std::vector<SpaceParameter>& parameters() const { return parameters_; }
  // Valid configurations.
  uint64_t size() const { return size_; }
  // Combinations of values, valid or not.
  double combination_count() const;
  // The first constraint that could not be evaluated somewhere, and why; empty: none.
  const std::string& note() const { return note_; }

  // The valid configuration number `index`, below size(), in an order that is fixed for a space.
  SpacePoint At(uint64_t index) const;
  // Its number; nothing where it is not valid.
  std::optional<uint64_t> IndexOf(std::span<const uint16_t> point) const;
  // Uniform over the valid ones.
  SpacePoint Draw(Random* random) const { return At(random->Below(size_)); }
  // The valid ones that differ from `point` in exactly one parameter, by parameter and value.
  std::vector<SpacePoint> Neighbours(std::span<const uint16_t> point) const;
  // By name.
  ValueMap ValuesOf(std::span<const uint16_t> point) const;
  // The point with these values, valid or not. INVALID_ARGUMENT for a parameter that is missing or
  // has no such value.
  absl::StatusOr<SpacePoint> PointOf(const ValueMap& values) const;

 private:
  friend class SpaceBuilder;
  struct Edge {
    uint64_t before = 0;  // valid ends of the edges before it of its node
    uint32_t child = 0;   // node of the next layer
    uint16_t value = 0;
  };
  struct Layer {
    size_t parameter = 0;
    // The edges of node i are those from starts[i] up to starts[i + 1].
    std::vector<uint32_t> starts;
    std::vector<Edge> edges;
  };
  TuningSpace() = default;

  std::vector<SpaceParameter> parameters_;
  std::vector<Layer> layers_;
  uint64_t size_ = 0;
  std::string note_;
};

}  // namespace assay

#endif  // ASSAY_TUNING_SPACE_TUNING_SPACE_H_
