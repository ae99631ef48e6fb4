#include "kernels/plan/propose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/plan/source_scan.h"
#include "kernels/problem.h"
#include "kernels/text.h"

namespace assay {
namespace {

constexpr int64_t kBlockThreads = 256;
constexpr int64_t kBlockThreadsMax = 1024;

// Names that people give to the number of elements.
constexpr std::string_view kCountNames[] = {
    "n",          "size",         "len",         "length",         "count", "num",
    "total",      "num_elements", "numelements", "total_elements", "numel", "n_elements",
    "total_size", "elements",     "nelem",       "element_count"};

absl::Status Refuse(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "PLAN_NOT_PROPOSED",
                         absl::StrCat("no plan can be proposed: ", Av(message)));
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// "d_A", "a_ptr", "pA" and "g_a" all mean a.
std::set<std::string> Spellings(const std::string& name) {
  std::set<std::string> spellings = {name, Lower(name)};
  const std::string lower = Lower(name);
  for (const std::string_view prefix : {"d_", "g_", "dev_", "p_", "ptr_", "in_", "out_"}) {
    if (lower.starts_with(prefix)) spellings.insert(lower.substr(prefix.size()));
  }
  for (const std::string_view suffix : {"_ptr", "_d", "_dev", "_in", "_out", "_data"}) {
    if (lower.ends_with(suffix)) spellings.insert(lower.substr(0, lower.size() - suffix.size()));
  }
  if (name.size() == 2 && name[0] == 'p') spellings.insert(lower.substr(1));
  return spellings;
}

// C++ types that may hold elements of a dtype.
struct ElementType {
  std::string_view name;
  std::initializer_list<v1::DataType> dtypes;
};

// Whether elements of C++ type `type` may hold `dtype`; unknown types may.
bool Fits(std::string_view type, v1::DataType dtype) {
  const ElementType known[] = {{"float", {v1::F32}},
                               {"float2", {v1::F32}},
                               {"float4", {v1::F32}},
                               {"double", {v1::F64}},
                               {"double2", {v1::F64}},
                               {"int", {v1::I32}},
                               {"int32_t", {v1::I32}},
                               {"int4", {v1::I32, v1::I8, v1::U8}},
                               {"unsigned", {v1::I32}},
                               {"unsigned int", {v1::I32}},
                               {"signed char", {v1::I8}},
                               {"int8_t", {v1::I8}},
                               {"char", {v1::I8, v1::U8}},
                               {"char4", {v1::I8}},
                               {"unsigned char", {v1::U8}},
                               {"uint8_t", {v1::U8}},
                               {"half", {v1::F16}},
                               {"__half", {v1::F16}},
                               {"half2", {v1::F16}},
                               {"__half2", {v1::F16}},
                               {"__nv_bfloat16", {v1::BF16}},
                               {"nv_bfloat16", {v1::BF16}},
                               {"__nv_bfloat162", {v1::BF16}},
                               {"uint16_t", {v1::F16, v1::BF16}},
                               {"unsigned short", {v1::F16, v1::BF16}}};
  for (const ElementType& row : known) {
    if (row.name != type) continue;
    return std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end();
  }
  return true;
}

bool IsInteger(const std::string& type) {
  constexpr std::string_view kTypes[] = {"int",           "unsigned",       "unsigned int",
                                         "long",          "unsigned long",  "long long",
                                         "long int",      "long long int",  "unsigned long long",
                                         "short",         "unsigned short", "char",
                                         "unsigned char", "signed char",    "bool",
                                         "int8_t",        "uint8_t",        "int16_t",
                                         "uint16_t",      "int32_t",        "uint32_t",
                                         "int64_t",       "uint64_t",       "size_t",
                                         "ssize_t",       "ptrdiff_t",      "std::size_t",
                                         "std::int64_t",  "std::int32_t",   "uint"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

std::string Factor(const std::string& expression) {
  const bool plain = std::all_of(expression.begin(), expression.end(),
                                 [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return plain ? expression : absl::StrCat("(", expression, ")");
}

// The product of dimensions [begin, end).
std::string Product(const v1::Tensor& tensor, int begin, int end) {
  std::vector<std::string> factors;
  for (int i = begin; i < end; ++i) {
    if (tensor.shape(i) != "1") factors.push_back(Factor(tensor.shape(i)));
  }
  return factors.empty() ? "1" : absl::StrJoin(factors, " * ");
}

std::string Elements(const v1::Tensor& tensor) { return Product(tensor, 0, tensor.shape_size()); }

std::string CeilDiv(const std::string& count, int64_t by) {
  if (by == 1 || count == "1") return count;
  return absl::StrCat("ceil_div(", count, ", ", by, ")");
}

class Proposer {
 public:
  Proposer(const v1::Problem& problem, const ScannedSource& source, const ScannedKernel& kernel)
      : problem_(problem), source_(source), kernel_(kernel), args_(kernel.parameters.size()) {
    for (const v1::Tensor& tensor : problem.tensors()) {
      if (tensor.role() == v1::Tensor::OUTPUT && output_ == nullptr) output_ = &tensor;
    }
  }

  absl::StatusOr<PlanProposal> Run() {
    if (output_ == nullptr) return Refuse("the problem has no output");
    ASSAY_RETURN_IF_ERROR(CheckParameters());
    ASSAY_RETURN_IF_ERROR(MatchTensors());
    ASSAY_RETURN_IF_ERROR(MatchIntegers());
    ASSAY_RETURN_IF_ERROR(ChooseBlock());
    ASSAY_RETURN_IF_ERROR(ChooseGrid());
    return Write();
  }

 private:
  std::string Where(size_t i) const {
    const ScannedParameter& parameter = kernel_.parameters[i];
    return absl::StrCat("line ", parameter.line, ": parameter ",
                        parameter.name.empty() ? absl::StrCat(i + 1) : Quoted(parameter.name));
  }

  // "'a' (input), 'c' (output)" and so on.
  std::string TensorNames() const;
  std::string ParameterNames() const;
  absl::Status CheckParameters() const;
  const v1::Tensor* FindTensor(const std::string& name) const;
  absl::Status UseTensor(size_t i, const v1::Tensor& tensor);
  absl::Status MatchTensors();
  absl::Status MatchIntegers();
  std::optional<int64_t> LaunchBound() const;
  absl::Status ChooseBlock();
  absl::Status ChooseGrid();
  void OneDimensionalGrid();
  PlanProposal Write() const;

  const v1::Problem& problem_;
  const ScannedSource& source_;
  const ScannedKernel& kernel_;
  const v1::Tensor* output_ = nullptr;
  std::vector<std::string> args_;
  std::set<std::string> used_;  // tensors and axes
  std::array<int64_t, 3> block_ = {1, 1, 1};
  std::vector<std::string> grid_;
  std::vector<std::string> notes_;
};

std::string Proposer::TensorNames() const {
  std::vector<std::string> names;
  for (const v1::Tensor& tensor : problem_.tensors()) {
    names.push_back(absl::StrCat("'", tensor.name(), "' (", v1::DataType_Name(tensor.dtype()),
                                 tensor.role() == v1::Tensor::INPUT ? " input)" : " output)"));
  }
  return absl::StrJoin(names, ", ");
}

std::string Proposer::ParameterNames() const {
  std::vector<std::string> names;
  for (const ScannedParameter& parameter : kernel_.parameters) {
    names.push_back(Quoted(parameter.name));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

absl::Status Proposer::CheckParameters() const {
  if (source_.has_dynamic_shared) {
    return Refuse(
        "the source uses `extern __shared__`, and only its author knows how many bytes that "
        "needs; write the plan with shared_bytes, or use an array of fixed size");
  }
  if (kernel_.parameters.size() > limits::kLaunchArgumentsMax) {
    return Refuse(
        absl::StrCat("the kernel has more than ", limits::kLaunchArgumentsMax, " parameters"));
  }
  for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
    const ScannedParameter& parameter = kernel_.parameters[i];
    if (parameter.is_pointer || IsInteger(parameter.type)) continue;
    return Refuse(absl::StrCat(Where(i), " is a ", Quoted(parameter.type),
                               " by value; plans pass buffers and integers only, so make it a "
                               "constant of the source"));
  }
  return absl::OkStatus();
}

const v1::Tensor* Proposer::FindTensor(const std::string& name) const {
  for (const v1::Tensor& tensor : problem_.tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  for (const std::string& spelling : Spellings(name)) {
    for (const v1::Tensor& tensor : problem_.tensors()) {
      if (Lower(tensor.name()) == spelling) return &tensor;
    }
  }
  return nullptr;
}

absl::Status Proposer::UseTensor(size_t i, const v1::Tensor& tensor) {
  const ScannedParameter& parameter = kernel_.parameters[i];
  if (!Fits(parameter.type, tensor.dtype())) {
    return Refuse(absl::StrCat(Where(i), " points to ", Quoted(parameter.type), ", but tensor '",
                               tensor.name(), "' is ", v1::DataType_Name(tensor.dtype())));
  }
  if (parameter.is_const && tensor.role() == v1::Tensor::OUTPUT) {
    return Refuse(
        absl::StrCat(Where(i), " is const, but tensor '", tensor.name(), "' is an output"));
  }
  if (!used_.insert(tensor.name()).second) {
    return Refuse(absl::StrCat(Where(i), " means tensor '", tensor.name(),
                               "', which another parameter has already"));
  }
  args_[i] = tensor.name();
  return absl::OkStatus();
}

absl::Status Proposer::MatchTensors() {
  for (size_t i = 0; i < args_.size(); ++i) {
    if (!kernel_.parameters[i].is_pointer || kernel_.parameters[i].name.empty()) continue;
    const v1::Tensor* tensor = FindTensor(kernel_.parameters[i].name);
    if (tensor != nullptr) ASSAY_RETURN_IF_ERROR(UseTensor(i, *tensor));
  }
  // The rest by order: const ones among the inputs, the others among the outputs first.
  for (size_t i = 0; i < args_.size(); ++i) {
    const ScannedParameter& parameter = kernel_.parameters[i];
    if (!parameter.is_pointer || !args_[i].empty()) continue;
    const v1::Tensor* next = nullptr;
    for (const v1::Tensor& tensor : problem_.tensors()) {
      const bool input = tensor.role() == v1::Tensor::INPUT;
      if (input == parameter.is_const && used_.count(tensor.name()) == 0 && next == nullptr) {
        next = &tensor;
      }
    }
    // Many sources leave const out; then the order of the problem decides.
    for (const v1::Tensor& tensor : problem_.tensors()) {
      if (next == nullptr && !parameter.is_const && used_.count(tensor.name()) == 0) {
        next = &tensor;
      }
    }
    if (next == nullptr) {
      return Refuse(absl::StrCat(Where(i), " is a pointer, and no ",
                                 parameter.is_const ? "input" : "tensor",
                                 " of the problem is left for it; the tensors are ", TensorNames(),
                                 ". If it is scratch, write the plan with a workspace"));
    }
    ASSAY_RETURN_IF_ERROR(UseTensor(i, *next));
    notes_.push_back(absl::StrCat(Where(i), " was given tensor '", next->name(), "' by its order"));
  }
  for (const v1::Tensor& tensor : problem_.tensors()) {
    if (tensor.role() == v1::Tensor::OUTPUT && used_.count(tensor.name()) == 0) {
      return Refuse(absl::StrCat("line ", kernel_.line, ": no parameter of kernel ",
                                 Quoted(kernel_.name), " stands for the output '", tensor.name(),
                                 "'; give it a pointer of that name. Its parameters are ",
                                 ParameterNames()));
    }
  }
  return absl::OkStatus();
}

absl::Status Proposer::MatchIntegers() {
  std::vector<size_t> open;
  for (size_t i = 0; i < args_.size(); ++i) {
    const ScannedParameter& parameter = kernel_.parameters[i];
    if (parameter.is_pointer) continue;
    for (const v1::Axis& axis : problem_.axes()) {
      const bool same =
          axis.name() == parameter.name || Lower(axis.name()) == Lower(parameter.name);
      if (same && used_.insert(axis.name()).second) {
        args_[i] = axis.name();
        break;
      }
    }
    if (args_[i].empty()) open.push_back(i);
  }
  if (open.size() == 1) {
    const size_t i = open[0];
    const std::string name = Lower(kernel_.parameters[i].name);
    if (std::find(std::begin(kCountNames), std::end(kCountNames), name) != std::end(kCountNames)) {
      args_[i] = Elements(*output_);
      // A sum to one element counts what it reads.
      if (args_[i] == "1") args_[i] = Elements(problem_.tensors(0));
      notes_.push_back(absl::StrCat(Where(i), " was taken for the number of elements, ", args_[i]));
      return absl::OkStatus();
    }
  }
  std::vector<std::string> left;
  for (const v1::Axis& axis : problem_.axes()) {
    if (used_.count(axis.name()) == 0) left.push_back(axis.name());
  }
  if (open.size() > left.size() || (!open.empty() && open.size() != left.size())) {
    std::vector<std::string> names;
    for (const v1::Axis& axis : problem_.axes())
      names.push_back(absl::StrCat("'", axis.name(), "'"));
    return Refuse(absl::StrCat(Where(open[0]), " has no name of an axis; the axes are ",
                               absl::StrJoin(names, ", "), ". Rename it, or write the plan"));
  }
  for (size_t k = 0; k < open.size(); ++k) {
    args_[open[k]] = left[k];
    notes_.push_back(absl::StrCat(Where(open[k]), " was given axis '", left[k], "' by its order"));
  }
  return absl::OkStatus();
}

std::optional<int64_t> Proposer::LaunchBound() const {
  int64_t value = 0;
  if (absl::SimpleAtoi(kernel_.launch_bound, &value)) return value;
  const auto it = source_.constants.find(kernel_.launch_bound);
  if (it == source_.constants.end()) return std::nullopt;
  return it->second;
}

absl::Status Proposer::ChooseBlock() {
  int64_t threads = kBlockThreads;
  if (!kernel_.launch_bound.empty()) {
    const std::optional<int64_t> bound = LaunchBound();
    if (!bound.has_value() || *bound < 1 || *bound > kBlockThreadsMax) {
      return Refuse(absl::StrCat("line ", kernel_.line, ": __launch_bounds__(",
                                 Quoted(kernel_.launch_bound), ") is no number from 1 to ",
                                 kBlockThreadsMax, " that can be seen here; write the plan"));
    }
    threads = *bound;
  }
  // Threads are spread over the dimensions that are used, x the widest: 16 x 16, 8 x 8 x 4.
  int dimensions = 0;
  for (const bool used : kernel_.uses_thread) dimensions += used ? 1 : 0;
  if (dimensions <= 1) {
    for (size_t i = 0; i < 3; ++i) {
      if (kernel_.uses_thread[i]) block_[i] = i == 2 ? std::min<int64_t>(threads, 64) : threads;
    }
    return absl::OkStatus();
  }
  for (int64_t product = 1, i = 0; product * 2 <= threads; product *= 2, ++i) {
    for (size_t step = 0; step < 3; ++step) {
      const size_t dimension = (static_cast<size_t>(i) + step) % 3;
      if (!kernel_.uses_thread[dimension]) continue;
      const bool smallest = std::all_of(block_.begin(), block_.end(), [&](int64_t other) {
        return other == 1 || block_[dimension] <= other;
      });
      if (!smallest && block_[dimension] != 1) continue;
      block_[dimension] *= 2;
      break;
    }
  }
  return absl::OkStatus();
}

void Proposer::OneDimensionalGrid() {
  const int rank = output_->shape_size();
  if (kernel_.multiplies_block[0] || !kernel_.uses_block[0]) {
    std::string count = Elements(*output_);
    if (count == "1") {
      count = Elements(problem_.tensors(0));
      notes_.push_back("the output has one element, so the grid covers the first input");
    }
    grid_ = {kernel_.uses_block[0] ? CeilDiv(count, block_[0]) : "1"};
    return;
  }
  // blockIdx.x is an index by itself: a block for each row.
  grid_ = {rank >= 2 ? Product(*output_, 0, rank - 1) : Elements(*output_)};
  notes_.push_back(absl::StrCat("blockIdx.x is used as an index, so there are ", grid_[0],
                                " blocks, one for each row of '", output_->name(), "'"));
}

absl::Status Proposer::ChooseGrid() {
  const int used = kernel_.uses_block[2] ? 3 : kernel_.uses_block[1] ? 2 : 1;
  const int rank = output_->shape_size();
  if (used == 1) {
    OneDimensionalGrid();
    return absl::OkStatus();
  }
  if (rank < used) {
    return Refuse(absl::StrCat("line ", kernel_.line, ": ", Quoted(kernel_.name), " uses blockIdx.",
                               std::string(1, "xyz"[used - 1]), ", but the output '",
                               output_->name(), "' has only ", rank,
                               " dimensions; write the plan"));
  }
  // x runs along the last dimension; the highest that is used takes all that are left.
  for (int i = 0; i < used; ++i) {
    const int end = rank - i;
    const std::string extent = Product(*output_, i == used - 1 ? 0 : end - 1, end);
    grid_.push_back(CeilDiv(extent, block_[static_cast<size_t>(i)]));
  }
  notes_.push_back(absl::StrCat("x was taken for the last dimension of '", output_->name(),
                                "', y for the one before"));
  return absl::OkStatus();
}

PlanProposal Proposer::Write() const {
  PlanProposal proposal;
  proposal.kernel = kernel_.name;
  proposal.notes = notes_;
  std::string& plan = proposal.plan;
  absl::StrAppend(&plan, "plan {\n  launches {\n    kernel: \"", kernel_.name, "\"\n");
  for (const std::string& extent : grid_) absl::StrAppend(&plan, "    grid: \"", extent, "\"\n");
  const int dimensions = block_[2] > 1 ? 3 : block_[1] > 1 ? 2 : 1;
  for (int i = 0; i < dimensions; ++i) {
    absl::StrAppend(&plan, "    block: \"", block_[static_cast<size_t>(i)], "\"\n");
  }
  for (const std::string& arg : args_) absl::StrAppend(&plan, "    args: \"", arg, "\"\n");
  absl::StrAppend(&plan, "  }\n}\n");
  proposal.comment = absl::StrCat("/* assay-candidate\nproblem: \"", ProblemId(problem_.name()),
                                  "\"\nlanguage: CUDA_CPP\n", plan, "*/\n");
  return proposal;
}

}  // namespace

absl::StatusOr<PlanProposal> ProposePlan(std::string_view source, const v1::Problem& problem) {
  if (source.size() > limits::kSourceBytesMax) {
    return Refuse(absl::StrCat("the source has ", source.size(), " bytes; at most ",
                               limits::kSourceBytesMax, " are allowed"));
  }
  const ScannedSource scanned = ScanCudaSource(source);
  if (scanned.kernels.empty()) {
    return Refuse("the source has no __global__ function with a body");
  }
  if (scanned.kernels.size() > 1) {
    std::vector<std::string> names;
    for (const ScannedKernel& kernel : scanned.kernels) {
      if (names.size() < 8)
        names.push_back(absl::StrCat(Quoted(kernel.name), " (line ", kernel.line, ")"));
    }
    return Refuse(absl::StrCat("the source has ", scanned.kernels.size(),
                               " kernels: ", absl::StrJoin(names, ", "),
                               "; write the plan, which says in which order they run"));
  }
  const ScannedKernel& kernel = scanned.kernels[0];
  if (!kernel.is_extern_c) {
    return Refuse(absl::StrCat("line ", kernel.line, ": kernel ", Quoted(kernel.name),
                               " is not extern \"C\", so its name in the PTX is not known; write "
                               "extern \"C\" before __global__"));
  }
  return Proposer(problem, scanned, kernel).Run();
}

}  // namespace assay
