#include "tuning/space/tuning_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/text.h"

namespace assay {
namespace {

absl::Status Invalid(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "SPACE_INVALID", message);
}

absl::Status TooLarge(std::string_view what) {
  return ErrorWithReason(absl::StatusCode::kResourceExhausted, "SPACE_TOO_LARGE",
                         absl::StrCat(Av(what), "; leave out values or parameters"));
}

// A constraint, ready to be evaluated for values of the parameters.
struct Constraint {
  Expression expression;
  std::vector<int64_t> loaded;                       // by name; constants are filled in
  std::vector<std::pair<size_t, size_t>> variables;  // place in `loaded`, parameter
};

bool Uses(const Constraint& constraint, size_t parameter) {
  return std::any_of(constraint.variables.begin(), constraint.variables.end(),
                     [&](const auto& variable) { return variable.second == parameter; });
}

absl::Status CheckParameters(const std::vector<SpaceParameter>& parameters,
                             const ValueMap& constants) {
  if (parameters.size() > limits::kParametersMax) {
    return Invalid(
        absl::StrCat(parameters.size(), " parameters; at most ", limits::kParametersMax));
  }
  std::map<std::string, int> seen;
  for (const SpaceParameter& parameter : parameters) {
    const std::string name = Quoted(parameter.name);
    if (++seen[parameter.name] > 1) return Invalid(absl::StrCat(name, " is declared twice"));
    if (constants.contains(parameter.name)) {
      return Invalid(absl::StrCat(name, " is a parameter and an axis; rename one"));
    }
    if (parameter.values.empty()) return Invalid(absl::StrCat(name, " has no values"));
    if (parameter.values.size() > limits::kParameterValuesMax) {
      return Invalid(absl::StrCat(name, " has ", parameter.values.size(), " values; at most ",
                                  limits::kParameterValuesMax));
    }
    std::vector<int64_t> sorted = parameter.values;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      return Invalid(absl::StrCat(name, " has the value ", *twice, " twice"));
  }
  return absl::OkStatus();
}

}  // namespace

class SpaceBuilder {
 public:
  SpaceBuilder(std::vector<SpaceParameter> parameters, const ValueMap& constants)
      : constants_(constants), values_(parameters.size()) {
    space_.parameters_ = std::move(parameters);
  }

  absl::StatusOr<TuningSpace> Build(const std::vector<std::string>& constraints) {
    ASSAY_RETURN_IF_ERROR(CheckParameters(space_.parameters_, constants_));
    if (constraints.size() > limits::kDeclarationsMax) {
      return Invalid(
          absl::StrCat(constraints.size(), " constraints; at most ", limits::kDeclarationsMax));
    }
    for (const std::string& text : constraints) ASSAY_RETURN_IF_ERROR(AddConstraint(text));
    ASSAY_RETURN_IF_ERROR(Grow());
    ASSAY_RETURN_IF_ERROR(Count());
    if (space_.size_ > 0) return std::move(space_);
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "SPACE_EMPTY",
                           absl::StrCat("no configuration satisfies ",
                                        absl::StrJoin(constraints, " && ").substr(0, 200),
                                        space_.note_.empty() ? "" : "; ", space_.note_,
                                        "; correct the constraints or add values"));
  }

 private:
  const std::vector<SpaceParameter>& parameters() const { return space_.parameters_; }

  absl::Status AddConstraint(const std::string& text) {
    absl::StatusOr<Expression> expression = Expression::Parse(text);
    if (!expression.ok()) return Invalid(Sv(expression.status().message()));
    Constraint constraint{*std::move(expression), {}, {}};
    for (const std::string& name : constraint.expression.names()) {
      const auto constant = constants_.find(name);
      if (constant != constants_.end()) {
        constraint.loaded.push_back(constant->second);
        continue;
      }
      const auto parameter =
          std::find_if(parameters().begin(), parameters().end(),
                       [&](const SpaceParameter& one) { return one.name == name; });
      if (parameter == parameters().end()) {
        return Invalid(absl::StrCat("constraint ", Quoted(text), " uses ", Quoted(name),
                                    ", which is no parameter, axis or limit of the device"));
      }
      constraint.variables.emplace_back(constraint.loaded.size(),
                                        static_cast<size_t>(parameter - parameters().begin()));
      constraint.loaded.push_back(0);
    }
    constraints_.push_back(std::move(constraint));
    return absl::OkStatus();
  }

  bool Holds(Constraint& constraint) {
    for (const auto& [place, parameter] : constraint.variables) {
      constraint.loaded[place] = values_[parameter];
    }
    const absl::StatusOr<int64_t> value =
        constraint.expression.Evaluate(std::span<const int64_t>(constraint.loaded));
    if (value.ok()) return *value != 0;
    if (space_.note_.empty()) {
      space_.note_ = absl::StrCat("where this cannot be evaluated nothing is valid: ",
                                  value.status().message());
    }
    return false;
  }

  // Parameters of `known` whose values some constraint looks at together with unknown ones.
  std::vector<size_t> OpenOnes(const std::vector<bool>& known) const {
    std::vector<bool> open(parameters().size());
    for (const Constraint& constraint : constraints_) {
      if (IsKnown(constraint, known)) continue;
      for (const auto& [place, parameter] : constraint.variables) {
        if (known[parameter]) open[parameter] = true;
      }
    }
    std::vector<size_t> out;
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i]) out.push_back(i);
    }
    return out;
  }

  static bool IsKnown(const Constraint& constraint, const std::vector<bool>& known) {
    return std::all_of(constraint.variables.begin(), constraint.variables.end(),
                       [&](const auto& variable) { return known[variable.second]; });
  }

  // The parameter that leaves the fewest combinations of open values; of those the one that decides
  // most constraints.
  size_t NextParameter(const std::vector<bool>& known) const {
    size_t best = 0;
    double best_cost = std::numeric_limits<double>::infinity();
    int64_t best_decided = -1;
    for (size_t p = 0; p < known.size(); ++p) {
      if (known[p]) continue;
      std::vector<bool> then = known;
      then[p] = true;
      double cost = 0;
      for (const size_t open : OpenOnes(then)) {
        cost += std::log2(static_cast<double>(parameters()[open].values.size()));
      }
      const int64_t decided =
          std::count_if(constraints_.begin(), constraints_.end(),
                        [&](const Constraint& one) { return Uses(one, p) && IsKnown(one, then); });
      if (cost > best_cost || (cost == best_cost && decided <= best_decided)) continue;
      best = p;
      best_cost = cost;
      best_decided = decided;
    }
    return best;
  }

  // How open values are packed into one number.
  struct Packing {
    std::vector<size_t> parameters;
    std::vector<uint64_t> factors;
  };
  absl::StatusOr<Packing> PackingOf(const std::vector<bool>& known) const {
    Packing packing;
    packing.parameters = OpenOnes(known);
    uint64_t factor = 1;
    for (const size_t parameter : packing.parameters) {
      packing.factors.push_back(factor);
      if (__builtin_mul_overflow(factor, parameters()[parameter].values.size(), &factor)) {
        return TooLarge("the constraints hang together too much");
      }
    }
    return packing;
  }

  // Layers from the first parameter to the last, without looking whether they lead anywhere.
  absl::Status Grow() {
    for (Constraint& constraint : constraints_) {
      if (constraint.variables.empty() && !Holds(constraint)) return absl::OkStatus();
    }
    std::vector<bool> known(parameters().size());
    std::vector<size_t> order;
    std::vector<Packing> packings(1);
    for (size_t depth = 0; depth < parameters().size(); ++depth) {
      order.push_back(NextParameter(known));
      known[order.back()] = true;
      ASSAY_ASSIGN_OR_RETURN(Packing packing, PackingOf(known));
      packings.push_back(std::move(packing));
    }
    std::fill(known.begin(), known.end(), false);
    std::vector<uint64_t> nodes = {0};  // of the layer, packed
    size_t node_count = 0;
    size_t edge_count = 0;
    for (size_t depth = 0; depth < order.size(); ++depth) {
      const size_t parameter = order[depth];
      known[parameter] = true;
      std::vector<Constraint*> decided;
      for (Constraint& constraint : constraints_) {
        if (Uses(constraint, parameter) && IsKnown(constraint, known)) {
          decided.push_back(&constraint);
        }
      }
      std::vector<uint64_t> next_nodes;
      TuningSpace::Layer& layer = space_.layers_.emplace_back();
      layer.parameter = parameter;
      GrowLayer(packings[depth], nodes, decided, packings[depth + 1], &next_nodes, &layer);
      node_count += next_nodes.size();
      edge_count += layer.edges.size();
      if (node_count > limits::kSpaceNodesMax || edge_count > limits::kSpaceEdgesMax) {
        return TooLarge(absl::StrCat("the constraints hang together too much at ",
                                     Quoted(parameters()[parameter].name)));
      }
      nodes = std::move(next_nodes);
    }
    is_grown_ = true;
    return absl::OkStatus();
  }

  void GrowLayer(const Packing& packing, const std::vector<uint64_t>& nodes,
                 const std::vector<Constraint*>& decided, const Packing& next_packing,
                 std::vector<uint64_t>* next_nodes, TuningSpace::Layer* layer) {
    absl::flat_hash_map<uint64_t, uint32_t> numbers;
    std::vector<uint16_t> positions(parameters().size());
    const std::vector<int64_t>& choices = parameters()[layer->parameter].values;
    for (const uint64_t node : nodes) {
      layer->starts.push_back(static_cast<uint32_t>(layer->edges.size()));
      if (layer->edges.size() > limits::kSpaceEdgesMax ||
          next_nodes->size() > limits::kSpaceNodesMax) {
        break;  // the caller refuses it
      }
      uint64_t rest = node;
      for (const size_t open : packing.parameters) {
        const std::vector<int64_t>& values = parameters()[open].values;
        positions[open] = static_cast<uint16_t>(rest % values.size());
        values_[open] = values[positions[open]];
        rest /= values.size();
      }
      for (size_t choice = 0; choice < choices.size(); ++choice) {
        positions[layer->parameter] = static_cast<uint16_t>(choice);
        values_[layer->parameter] = choices[choice];
        if (!std::all_of(decided.begin(), decided.end(),
                         [&](Constraint* constraint) { return Holds(*constraint); })) {
          continue;
        }
        uint64_t packed = 0;
        for (size_t i = 0; i < next_packing.parameters.size(); ++i) {
          packed += next_packing.factors[i] * positions[next_packing.parameters[i]];
        }
        const auto [found, is_new] =
            numbers.try_emplace(packed, static_cast<uint32_t>(next_nodes->size()));
        if (is_new) next_nodes->push_back(packed);
        layer->edges.push_back({0, found->second, static_cast<uint16_t>(choice)});
      }
    }
    layer->starts.push_back(static_cast<uint32_t>(layer->edges.size()));
  }

  // From the last layer to the first: how many valid ends each edge has. Those without go.
  absl::Status Count() {
    if (!is_grown_) return absl::OkStatus();
    std::vector<uint64_t> ends = {1};  // of the nodes of the layer below
    for (size_t depth = space_.layers_.size(); depth-- > 0;) {
      TuningSpace::Layer& layer = space_.layers_[depth];
      std::vector<uint64_t> own(layer.starts.size() - 1);
      size_t kept = 0;
      for (size_t node = 0; node < own.size(); ++node) {
        const size_t first = layer.starts[node];
        const size_t end = layer.starts[node + 1];
        layer.starts[node] = static_cast<uint32_t>(kept);
        for (size_t i = first; i < end; ++i) {
          TuningSpace::Edge edge = layer.edges[i];
          edge.before = own[node];
          if (ends[edge.child] == 0) continue;
          layer.edges[kept++] = edge;
          if (__builtin_add_overflow(own[node], ends[edge.child], &own[node])) {
            return TooLarge("there are more than 2^64 valid configurations");
          }
        }
      }
      layer.starts.back() = static_cast<uint32_t>(kept);
      layer.edges.resize(kept);
      ends = std::move(own);
    }
    space_.size_ = ends[0];
    return absl::OkStatus();
  }

  const ValueMap& constants_;
  TuningSpace space_;
  std::vector<Constraint> constraints_;
  std::vector<int64_t> values_;  // by parameter, where known
  bool is_grown_ = false;
};

absl::StatusOr<TuningSpace> TuningSpace::Open(std::vector<SpaceParameter> parameters,
                                              const std::vector<std::string>& constraints,
                                              const ValueMap& constants) {
  return SpaceBuilder(std::move(parameters), constants).Build(constraints);
}

double TuningSpace::combination_count() const {
  double count = 1;
  for (const SpaceParameter& parameter : parameters_) {
    count *= static_cast<double>(parameter.values.size());
  }
  return count;
}

SpacePoint TuningSpace::At(uint64_t index) const {
  SpacePoint point(parameters_.size());
  size_t node = 0;
  for (const Layer& layer : layers_) {
    const auto first = layer.edges.begin() + layer.starts[node];
    const auto end = layer.edges.begin() + layer.starts[node + 1];
    const auto after = std::upper_bound(
        first, end, index, [](uint64_t wanted, const Edge& edge) { return wanted < edge.before; });
    const Edge& edge = *(after - 1);
    point[layer.parameter] = edge.value;
    index -= edge.before;
    node = edge.child;
  }
  return point;
}

std::optional<uint64_t> TuningSpace::IndexOf(std::span<const uint16_t> point) const {
  if (point.size() != parameters_.size()) return std::nullopt;
  uint64_t index = 0;
  size_t node = 0;
  for (const Layer& layer : layers_) {
    const uint16_t value = point[layer.parameter];
    const auto first = layer.edges.begin() + layer.starts[node];
    const auto end = layer.edges.begin() + layer.starts[node + 1];
    const auto found = std::lower_bound(
        first, end, value, [](const Edge& edge, uint16_t wanted) { return edge.value < wanted; });
    if (found == end || found->value != value) return std::nullopt;
    index += found->before;
    node = found->child;
  }
  return index;
}

std::vector<SpacePoint> TuningSpace::Neighbours(std::span<const uint16_t> point) const {
  std::vector<SpacePoint> out;
  SpacePoint other(point.begin(), point.end());
  for (size_t p = 0; p < other.size(); ++p) {
    for (size_t value = 0; value < parameters_[p].values.size(); ++value) {
      other[p] = static_cast<uint16_t>(value);
      if (other[p] != point[p] && IndexOf(other).has_value()) out.push_back(other);
    }
    other[p] = point[p];
  }
  return out;
}

ValueMap TuningSpace::ValuesOf(std::span<const uint16_t> point) const {
  ValueMap values;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    values[parameters_[p].name] = parameters_[p].values[point[p]];
  }
  return values;
}

absl::StatusOr<SpacePoint> TuningSpace::PointOf(const ValueMap& values) const {
  SpacePoint point;
  for (const SpaceParameter& parameter : parameters_) {
    const auto given = values.find(parameter.name);
    if (given == values.end()) return Invalid(absl::StrCat(Quoted(parameter.name), " is missing"));
    const auto found = std::find(parameter.values.begin(), parameter.values.end(), given->second);
    if (found == parameter.values.end()) {
      return Invalid(absl::StrCat(Quoted(parameter.name), " cannot be ", given->second));
    }
    point.push_back(static_cast<uint16_t>(found - parameter.values.begin()));
  }
  return point;
}

}  // namespace assay
