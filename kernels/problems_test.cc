// Holds every shipped problem to its contract, without the service: the data loads, the reference
// compiles and writes everything, every declared transform is true of the reference, and every
// shipped candidate is right on the small workloads under the whole battery of inputs; launch plans
// of device candidates fit every workload in every configuration. The code that runs here is our
// own; candidates of others run in the sandbox only.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/candidate.h"
#include "kernels/contract.h"
#include "kernels/expression/expression.h"
#include "kernels/inputs/inputs.h"
#include "kernels/problem.h"
#include "kernels/testing/problems.h"
#include "kernels/tolerance/tolerance.h"

namespace assay {
namespace {

using Invoke = void (*)(void* const*, const int64_t*);

constexpr uint64_t kSeed = 11;
// Small enough for a test under sanitizers.
constexpr double kOperationsMax = 2e7;
constexpr double kBytesMax = 16 << 20;

// One buffer for each tensor, aligned as candidates may expect.
class Buffers {
 public:
  // Outputs have the reference's element size when `reference` is set.
  Buffers(const ResolvedWorkload& workload, bool reference) {
    for (const TensorShape& tensor : workload.tensors) {
      const int64_t bytes = reference && tensor.is_output
                                ? tensor.elements * tensor.reference_element_bytes
                                : tensor.bytes;
      sizes_.push_back(static_cast<size_t>(bytes));
      const size_t rounded = (sizes_.back() + 63) / 64 * 64;
      owned_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(64, rounded)), &std::free);
      pointers_.push_back(owned_.back().get());
    }
  }
  std::span<std::byte> operator[](size_t i) const { return {owned_[i].get(), sizes_[i]}; }
  void* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<size_t> sizes_;
  std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> owned_;
  std::vector<void*> pointers_;
};

// A shared library that stays loaded as long as the process: its code may be in use anywhere.
absl::StatusOr<Invoke> Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(dlerror());
  void* symbol = dlsym(library, "assay_invoke");
  if (symbol == nullptr) return absl::InternalError("there is no assay_invoke");
  return reinterpret_cast<Invoke>(symbol);
}

// Writes `files` and compiles `sources` of them, with the prototype before each.
absl::StatusOr<Invoke> Build(const std::string& folder, const v1::Problem& problem, bool reference,
                             const google::protobuf::RepeatedPtrField<v1::SourceFile>& files,
                             const std::vector<std::string>& sources) {
  ASSAY_RETURN_IF_ERROR(CreateDirectories(folder));
  for (const v1::SourceFile& file : files) {
    const std::string path = absl::StrCat(folder, "/", file.path());
    ASSAY_RETURN_IF_ERROR(CreateDirectories(std::filesystem::path(path).parent_path().string()));
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, file.content()));
  }
  const std::string prototype = absl::StrCat(folder, "/assay_prototype.h");
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
      prototype, reference ? ReferencePrototype(problem) : CandidatePrototype(problem)));
  std::string arguments = absl::StrCat(reference ? "-O2" : "-O3 -march=native",
                                       " -ffp-contract=off -w -shared -fPIC -o ", folder,
                                       "/out.so -include ", prototype);
  for (const std::string& source : sources) absl::StrAppend(&arguments, " ", folder, "/", source);
  ASSAY_RETURN_IF_ERROR(testing::CompileCpp(absl::StrCat(folder, "/assay_invoke.cc"),
                                            InvokeSource(problem, reference), arguments)
                            .status());
  return Load(absl::StrCat(folder, "/out.so"));
}

const v1::TolerancePolicy& PolicyOf(const v1::Problem& problem, const TensorShape& shape) {
  const auto it = std::find_if(problem.tensors().begin(), problem.tensors().end(),
                               [&](const v1::Tensor& t) { return t.name() == shape.name; });
  return it->tolerance();
}

struct Shipped {
  std::string label;
  v1::Candidate candidate;
  v1::Problem problem;  // under its contract
  Invoke invoke = nullptr;
};

// Whether every output of a call is right; `worst` says what is not.
bool IsRight(const Shipped& one, const ResolvedWorkload& workload, const Buffers& got,
             const Buffers& want, std::string* worst) {
  bool right = true;
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    const TensorShape& shape = workload.tensors[i];
    if (!shape.is_output) continue;
    const OutputComparison result =
        CompareOutput(PolicyOf(one.problem, shape), shape, got[i], want[i]);
    if (result.passed) continue;
    right = false;
    *worst =
        absl::StrCat(shape.name, ": ", result.wrong_count, " wrong, first at ", result.first_wrong,
                     " got ", result.first_wrong_got, " want ", result.first_wrong_want, ", worst ",
                     result.element_error_max, ", L2 ", result.relative_l2);
  }
  return right;
}

class ProblemTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::ProblemsDirectory(), "/", GetParam());
    ASSERT_OK(LoadProblemDirectory(folder_, &problem_));
    auto scratch = TemporaryDirectory::Create("problem");
    ASSERT_THAT(scratch, IsOk());
    scratch_ = std::make_unique<TemporaryDirectory>(std::move(scratch).value());
  }

  // The workloads that a test can run; at least one.
  std::vector<ResolvedWorkload> SmallWorkloads() const {
    std::vector<ResolvedWorkload> out;
    for (const v1::Workload& workload : problem_.workloads()) {
      const auto resolved = ResolveWorkload(problem_, workload);
      EXPECT_THAT(resolved, IsOk());
      if (!resolved.ok()) continue;
      const auto cost = ComputeWorkCost(problem_, *resolved);
      EXPECT_THAT(cost, IsOk());
      if (!cost.ok() || cost->operations > kOperationsMax) continue;
      if (cost->footprint_bytes <= kBytesMax) out.push_back(*resolved);
    }
    EXPECT_FALSE(out.empty()) << "add a small workload, e.g. one that is verify_only";
    return out;
  }

  absl::StatusOr<Invoke> BuildReference() {
    return Build(scratch_->path() + "/reference", problem_, true, problem_.files(),
                 {problem_.reference()});
  }

  void GenerateInputs(const ResolvedWorkload& workload, const InputCaseSpec& input_case,
                      Buffers& buffers) {
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.tensors[i].is_output) continue;
      ASSERT_OK(GenerateInput(problem_, workload, i, input_case, kSeed, buffers[i]));
    }
  }

  static void Poison(const ResolvedWorkload& workload, Buffers& buffers) {
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.tensors[i].is_output) PoisonOutput(workload.tensors[i], buffers[i]);
    }
  }

  // The CPP candidates of a subfolder; none where it does not exist.
  absl::StatusOr<std::vector<Shipped>> BuildCandidates(const std::string& subfolder) {
    std::vector<Shipped> out;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(absl::StrCat(folder_, "/", subfolder), error)) {
      Shipped one;
      one.label = absl::StrCat(subfolder, "/", entry.path().filename().string());
      ASSAY_RETURN_IF_ERROR(LoadCandidate(entry.path().string(), problem_.name(), &one.candidate));
      ASSAY_RETURN_IF_ERROR(CheckCandidateAgainstProblem(one.candidate, problem_));
      if (one.candidate.spec().language() != v1::CPP) continue;
      ASSAY_ASSIGN_OR_RETURN(one.problem,
                             ProblemUnderContract(problem_, one.candidate.spec().contract()));
      ASSAY_ASSIGN_OR_RETURN(one.invoke,
                             Build(absl::StrCat(scratch_->path(), "/", one.label), problem_, false,
                                   one.candidate.files(), CandidateSources(one.candidate)));
      out.push_back(std::move(one));
    }
    return out;
  }

  std::string folder_;
  v1::Problem problem_;
  std::unique_ptr<TemporaryDirectory> scratch_;
};

TEST_P(ProblemTest, LoadsAndResolves) {
  EXPECT_EQ(problem_.name(), "problems/" + GetParam()) << "the folder bears another name";
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/README.md"));
  EXPECT_FALSE(problem_.summary().empty());
  EXPECT_FALSE(problem_.arithmetic().empty());
  EXPECT_FALSE(problem_.contracts().empty());
  EXPECT_GE(problem_.workloads_size(), 2);
  for (const v1::Workload& workload : problem_.workloads()) {
    ASSERT_OK_AND_ASSIGN(const ResolvedWorkload resolved, ResolveWorkload(problem_, workload));
    ASSERT_OK_AND_ASSIGN(const WorkCost cost, ComputeWorkCost(problem_, resolved));
    EXPECT_GT(cost.bytes_read + cost.bytes_written, 0) << workload.name();
    // Degenerate shapes may cost nothing, but what is measured does.
    EXPECT_TRUE(cost.operations > 0 || resolved.verify_only || cost.unit == v1::WorkModel::NONE)
        << workload.name();
    EXPECT_OK(DrawnTransform::Draw(problem_, resolved, kSeed));
  }
  EXPECT_FALSE(SmallWorkloads().empty());
}

// Elements of a reference's output that differ, up to the rounding of doubles summed in another
// order.
int64_t CountDifferent(const TensorShape& shape, std::span<const std::byte> a,
                       std::span<const std::byte> b, bool bitwise) {
  if (bitwise) return std::memcmp(a.data(), b.data(), a.size()) == 0 ? 0 : 1;
  v1::TolerancePolicy policy;
  policy.set_kind(v1::TolerancePolicy::SCALED);
  policy.set_relative_l2_max(1e-10);
  policy.set_element_max(1e-9);
  TensorShape doubles = shape;
  doubles.dtype = DataType::kF64;
  const OutputComparison comparison = CompareOutput(policy, doubles, a, b);
  return comparison.passed ? 0 : std::max<int64_t>(comparison.wrong_count, 1);
}

bool HasNaN(const TensorShape& shape, std::span<const std::byte> bytes) {
  if (shape.reference_element_bytes != 8) return false;
  for (int64_t i = 0; i < shape.elements; ++i) {
    double value;
    std::memcpy(&value, bytes.data() + i * 8, 8);
    if (std::isnan(value)) return true;
  }
  return false;
}

TEST_P(ProblemTest, TransformsAreTrueOfTheReference) {
  if (!testing::HasCommand("g++")) GTEST_SKIP() << "there is no g++ on this machine";
  ASSERT_OK_AND_ASSIGN(const Invoke reference, BuildReference());
  for (const ResolvedWorkload& workload : SmallWorkloads()) {
    Buffers plain(workload, true);
    GenerateInputs(workload, {"x1", -1}, plain);
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      // All bits set: NaN for doubles, so that what the reference does not write shows.
      if (workload.tensors[i].is_output) std::memset(plain[i].data(), 0xff, plain[i].size());
    }
    reference(plain.pointers(), workload.axis_values.data());
    for (const uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat("workload ", workload.name, " seed ", seed));
      ASSERT_OK_AND_ASSIGN(const DrawnTransform drawn,
                           DrawnTransform::Draw(problem_, workload, seed));
      Buffers moved(workload, true);
      Buffers want(workload, true);
      for (size_t i = 0; i < workload.tensors.size(); ++i) {
        if (workload.tensors[i].is_output) {
          EXPECT_FALSE(HasNaN(workload.tensors[i], plain[i])) << workload.tensors[i].name;
          drawn.ApplyToReference(i, plain[i], want[i]);
          std::memset(moved[i].data(), 0xee, moved[i].size());
        } else {
          drawn.ApplyToInput(i, plain[i], moved[i]);
        }
      }
      reference(moved.pointers(), workload.axis_values.data());
      for (size_t i = 0; i < workload.tensors.size(); ++i) {
        const TensorShape& shape = workload.tensors[i];
        if (!shape.is_output) continue;
        const bool bitwise = PolicyOf(problem_, shape).kind() == v1::TolerancePolicy::BITWISE;
        EXPECT_EQ(CountDifferent(shape, moved[i], want[i], bitwise), 0) << shape.name;
      }
    }
  }
}

TEST_P(ProblemTest, ShippedCandidatesAreRight) {
  if (!testing::HasCommand("g++")) GTEST_SKIP() << "there is no g++ on this machine";
  ASSERT_OK_AND_ASSIGN(const std::vector<Shipped> shipped, BuildCandidates("candidates"));
  ASSERT_FALSE(shipped.empty()) << "add a candidate in " << folder_ << "/candidates";
  ASSERT_OK_AND_ASSIGN(const Invoke reference, BuildReference());
  for (const ResolvedWorkload& workload : SmallWorkloads()) {
    for (const InputCaseSpec& input_case : InputBattery(problem_)) {
      Buffers want(workload, true);
      Buffers got(workload, false);
      GenerateInputs(workload, input_case, want);
      GenerateInputs(workload, input_case, got);
      reference(want.pointers(), workload.axis_values.data());
      for (const Shipped& one : shipped) {
        Poison(workload, got);
        one.invoke(got.pointers(), workload.axis_values.data());
        std::string worst;
        EXPECT_TRUE(IsRight(one, workload, got, want, &worst))
            << one.label << " workload " << workload.name << " case " << input_case.name << ": "
            << worst;
      }
    }
  }
}

// The tolerance's other side. Near misses of precision too: what narrower arithmetic costs must be
// more than the tolerance.
TEST_P(ProblemTest, WrongCandidatesAreWrong) {
  if (!testing::HasCommand("g++")) GTEST_SKIP() << "there is no g++ on this machine";
  ASSERT_OK_AND_ASSIGN(std::vector<Shipped> wrong, BuildCandidates("candidates_wrong"));
  ASSERT_OK_AND_ASSIGN(const Invoke reference, BuildReference());
  for (const ResolvedWorkload& workload : SmallWorkloads()) {
    for (const InputCaseSpec& input_case : InputBattery(problem_)) {
      if (wrong.empty()) return;
      Buffers want(workload, true);
      Buffers got(workload, false);
      GenerateInputs(workload, input_case, want);
      GenerateInputs(workload, input_case, got);
      reference(want.pointers(), workload.axis_values.data());
      std::erase_if(wrong, [&](const Shipped& one) {
        Poison(workload, got);
        one.invoke(got.pointers(), workload.axis_values.data());
        std::string unused;
        return !IsRight(one, workload, got, want, &unused);
      });
    }
  }
  for (const Shipped& one : wrong)
    ADD_FAILURE() << one.label << " is right in every small workload";
}

// Calls f for every configuration that satisfies the constraints.
template <typename F>
void ForEachConfiguration(const v1::CandidateSpec& spec, int parameter, ValueMap& values, F&& f) {
  if (parameter == spec.parameters_size()) {
    if (ResolveConfiguration(spec, values).ok()) f(values);
    return;
  }
  for (const int64_t value : spec.parameters(parameter).values()) {
    values[spec.parameters(parameter).name()] = value;
    ForEachConfiguration(spec, parameter + 1, values, f);
  }
}

int64_t Evaluated(const std::string& expression, const ValueMap& values) {
  const auto value = EvaluateExpression(expression, values);
  EXPECT_THAT(value, IsOk()) << expression;
  return value.value_or(-1);
}

void ExpectLaunchFits(const v1::Launch& launch, const ValueMap& values) {
  // Of every device from sm_75 on.
  constexpr int64_t kGridMax[] = {0x7fffffff, 65535, 65535};
  constexpr int64_t kBlockMax[] = {1024, 1024, 64};
  constexpr int64_t kThreadsMax = 1024;
  constexpr int64_t kSharedBytesMax = 48 << 10;
  for (int i = 0; i < launch.grid_size(); ++i) {
    const int64_t extent = Evaluated(launch.grid(i), values);
    EXPECT_TRUE(extent >= 1 && extent <= kGridMax[i]) << launch.grid(i) << " is " << extent;
  }
  int64_t threads = 1;
  for (int i = 0; i < launch.block_size(); ++i) {
    const int64_t extent = Evaluated(launch.block(i), values);
    EXPECT_TRUE(extent >= 1 && extent <= kBlockMax[i]) << launch.block(i) << " is " << extent;
    threads *= extent;
  }
  EXPECT_LE(threads, kThreadsMax);
  if (launch.shared_bytes().empty()) return;
  const int64_t shared = Evaluated(launch.shared_bytes(), values);
  EXPECT_TRUE(shared >= 0 && shared <= kSharedBytesMax) << launch.shared_bytes();
}

void ExpectPlanFits(const v1::CandidateSpec& spec, const v1::Problem& problem,
                    const ValueMap& values) {
  std::set<std::string> buffers;
  for (const v1::Tensor& tensor : problem.tensors()) buffers.insert(tensor.name());
  for (const v1::Workspace& workspace : spec.plan().workspaces()) {
    buffers.insert(workspace.name());
    const int64_t bytes = Evaluated(workspace.bytes(), values);
    EXPECT_TRUE(bytes >= 0 && bytes <= limits::kTensorBytesMax) << workspace.name();
  }
  for (const v1::Launch& launch : spec.plan().launches()) {
    SCOPED_TRACE(launch.kernel());
    ExpectLaunchFits(launch, values);
    for (const std::string& argument : launch.args()) {
      if (buffers.count(argument) != 0) continue;
      const int64_t value = Evaluated(argument, values);
      EXPECT_TRUE(value >= 0 && value <= 0x7fffffff) << argument << " is " << value;
    }
  }
}

TEST_P(ProblemTest, ShippedPlansFitEveryWorkload) {
  int plans = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/candidates", error)) {
    SCOPED_TRACE(entry.path().string());
    v1::Candidate candidate;
    ASSERT_OK(LoadCandidate(entry.path().string(), problem_.name(), &candidate));
    if (candidate.spec().language() == v1::CPP) continue;
    ASSERT_OK(CheckCandidateAgainstProblem(candidate, problem_));
    int configurations = 0;
    ValueMap values;
    ForEachConfiguration(candidate.spec(), 0, values, [&](const ValueMap& configuration) {
      ++configurations;
      for (const v1::Workload& workload : problem_.workloads()) {
        const auto resolved = ResolveWorkload(problem_, workload);
        ASSERT_THAT(resolved, IsOk());
        SCOPED_TRACE(resolved->name);
        ValueMap all = configuration;
        all.insert(resolved->axes.begin(), resolved->axes.end());
        ExpectPlanFits(candidate.spec(), problem_, all);
      }
    });
    EXPECT_GT(configurations, 0) << "no configuration satisfies the constraints";
    ++plans;
  }
  EXPECT_GE(plans, 2) << "add a plain and a good device candidate in " << folder_ << "/candidates";
}

// Fails when the folder is empty or ASSAY_SOURCE_DIR is not set: the tests above would not run.
TEST(ProblemsTest, ThereAreProblems) { EXPECT_FALSE(testing::ProblemFolders().empty()); }

// A report of other content admits nothing: scripts/audit_problems makes it anew.
TEST_P(ProblemTest, ItsAuditIsOfThisContent) {
  v1::ProblemAudit audit;
  ASSERT_OK(LoadProblemAudit(folder_, &audit));
  EXPECT_EQ(audit.problem(), problem_.name());
  EXPECT_EQ(audit.problem_version(), problem_.version());
  EXPECT_EQ(audit.problem_digest(), problem_.digest());
  EXPECT_TRUE(audit.passed());
  EXPECT_FALSE(audit.has_time());
}

INSTANTIATE_TEST_SUITE_P(Shipped, ProblemTest, ::testing::ValuesIn(testing::ProblemFolders()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProblemTest);

}  // namespace
}  // namespace assay
