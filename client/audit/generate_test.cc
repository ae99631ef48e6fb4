// Generated candidates, compiled and run: each does what its name says.
#include "client/audit/generate.h"

#include <dlfcn.h>

#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "client/audit/cases.h"
#include "client/audit/mutate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/inputs/inputs.h"
#include "kernels/problem.h"
#include "kernels/testing/problems.h"
#include "kernels/tolerance/tolerance.h"

namespace assay {
namespace {

using ::assay::testing::CompileCpp;

// One scaled and one exact output, narrow types, an axis that only an expression uses.
v1::Problem MixedProblem() {
  return testing::ProblemFromText(R"pb(
    name: "problems/mixed"
    version: 1
    arithmetic: "f32"
    axes { name: "n" }
    axes { name: "m" }
    tensors {
      name: "a"
      dtype: F16
      role: INPUT
      shape: "n"
      distribution { normal { mean: 1 stddev: 2 } }
    }
    tensors {
      name: "i"
      dtype: I32
      role: INPUT
      shape: "n"
      distribution { uniform_int { low: 0 high_expression: "m - 1" } }
    }
    tensors {
      name: "y"
      dtype: BF16
      role: OUTPUT
      shape: "ceil_div(n, 2)"
      shape: "2"
      tolerance { kind: SCALED relative_l2_max: 0.02 element_max: 0.02 }
    }
    tensors {
      name: "k"
      dtype: I32
      role: OUTPUT
      shape: "n"
      tolerance { kind: BITWISE }
    }
    constraints: "n % 2 == 0"
    reference: "reference.cc"
    work { unit: NONE }
    workloads {
      name: "w"
      axes { key: "n" value: 254 }
      axes { key: "m" value: 5 }
    }
    files {
      path: "reference.cc"
      content: "#include <cmath>\nextern \"C\" void mixed_reference(const uint16_t* a, const int32_t* i, double* y, int32_t* k, int64_t n, int64_t m) {\n  for (int64_t j = 0; j < n; ++j) {\n    const int e = (a[j] >> 10) & 31;\n    const double v = e == 0 ? std::ldexp(a[j] & 1023, -24) : std::ldexp(1024 + (a[j] & 1023), e - 25);\n    y[j] = (a[j] >> 15 ? -v : v) + 3;\n    k[j] = (i[j] + 1) % static_cast<int32_t>(m);\n  }\n}\n"
    })pb");
}

class GenerateTest : public ::testing::Test {
 protected:
  using Invoke = void (*)(void* const*, const int64_t*);

  absl::StatusOr<Invoke> Build(const std::string& source, bool reference) {
    const std::string path = absl::StrCat(folder_.path(), "/", count_++);
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
        path + ".h", reference ? ReferencePrototype(problem_) : CandidatePrototype(problem_)));
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path + ".cc", source));
    ASSAY_RETURN_IF_ERROR(
        CompileCpp(path + "_invoke.cc", InvokeSource(problem_, reference),
                   absl::StrCat("-std=c++20 -O1 -ffp-contract=off -w -shared -fPIC -Wl,-z,defs -o ",
                                path, ".so -include ", path, ".h ", path, ".cc"))
            .status());
    void* library = dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return absl::InternalError(dlerror());
    return reinterpret_cast<Invoke>(dlsym(library, "assay_invoke"));
  }

  // Whether a candidate is right on the first workload's inputs drawn by `seed`.
  bool Passes(const std::string& source) {
    const auto candidate = Build(source, false);
    EXPECT_OK(candidate);
    if (!candidate.ok()) return false;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      if (!Right(*candidate, seed)) return false;
    }
    return true;
  }

  bool Right(Invoke candidate, uint64_t seed) {
    const ResolvedWorkload workload = *ResolveWorkload(problem_, problem_.workloads(0));
    std::vector<std::vector<std::byte>> memory, want;
    std::vector<void*> pointers, want_pointers;
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      const TensorShape& tensor = workload.tensors[i];
      memory.emplace_back(static_cast<size_t>(tensor.bytes));
      want.emplace_back(static_cast<size_t>(tensor.elements * tensor.reference_element_bytes));
      if (tensor.is_output) {
        PoisonOutput(tensor, memory.back());
      } else {
        EXPECT_OK(GenerateInput(problem_, workload, i, {"x1", -1}, seed, memory.back()));
      }
      pointers.push_back(memory.back().data());
      want_pointers.push_back(tensor.is_output ? want.back().data() : memory.back().data());
    }
    reference_(want_pointers.data(), workload.axis_values.data());
    candidate(pointers.data(), workload.axis_values.data());
    for (size_t i = 0; i < workload.tensors.size(); ++i) {
      if (!workload.tensors[i].is_output) continue;
      for (const v1::Tensor& tensor : problem_.tensors()) {
        if (tensor.name() != workload.tensors[i].name) continue;
        if (!CompareOutput(tensor.tolerance(), workload.tensors[i], memory[i], want[i]).passed) {
          return false;
        }
      }
    }
    return true;
  }

  void Use(v1::Problem problem) {
    problem_ = std::move(problem);
    source_ = *ReferenceSource(problem_);
    scopes_ = *FindScopes(problem_);
    auto reference = Build(source_, true);
    ASSERT_OK(reference);
    reference_ = *reference;
  }
  static const std::string& SourceOf(const AuditCase& one) {
    return one.request.candidate().files(0).content();
  }

  TemporaryDirectory folder_ = *TemporaryDirectory::Create("assay-audit");
  int count_ = 0;
  v1::Problem problem_;
  std::string source_;
  AuditScopes scopes_;
  Invoke reference_ = nullptr;
};

TEST_F(GenerateTest, TheOracleIsRightAndEverythingElseIsNot) {
  Use(MixedProblem());
  const CaseMaker maker(&problem_, &scopes_);
  EXPECT_TRUE(Passes(OracleSource(problem_, source_)));
  const Version original = {source_, true, "", ""};
  EXPECT_TRUE(Passes(WitnessSource(problem_, original, original, {}, true)));
  for (const AuditCase& one : TrivialCases(problem_, source_, scopes_, maker)) {
    EXPECT_FALSE(Passes(SourceOf(one))) << one.name;
  }
  for (const bool reflect : {true, false}) {
    for (const AuditCase& one : SensitivityCases(problem_, source_, reflect, maker)) {
      // The middle of 0 to 4 reflects onto itself.
      if (one.name == "i_last" && reflect) continue;
      EXPECT_FALSE(Passes(SourceOf(one))) << one.name;
    }
  }
  for (const AuditCase& one : AxisCases(problem_, source_, maker)) {
    EXPECT_FALSE(Passes(SourceOf(one))) << one.name;
  }
}

TEST_F(GenerateTest, ErrorsLieOnTheSideOfTheToleranceThatTheyShould) {
  for (v1::Problem problem : {MixedProblem(), testing::ScaleRowsProblem()}) {
    SCOPED_TRACE(problem.name());
    Use(std::move(problem));
    const CaseMaker maker(&problem_, &scopes_);
    const LivenessCases cases = MakeLivenessCases(problem_, source_, maker);
    EXPECT_EQ(cases.accept.size(), 3u);
    for (const AuditCase& one : cases.accept) EXPECT_TRUE(Passes(SourceOf(one))) << one.name;
    for (const AuditCase& one : cases.reject) EXPECT_FALSE(Passes(SourceOf(one))) << one.name;
  }
}

TEST_F(GenerateTest, WitnessesTellDifferencesFromRounding) {
  Use(testing::ScaleRowsProblem());
  const Version original = {source_, true, "", ""};
  const auto has_witness = [&](const std::string& after, double honest) {
    const Version changed = {source_, true, "", after};
    return !Passes(WitnessSource(problem_, original, changed, {honest}, false));
  };
  const std::string off = "    Put(o[2], 5, Get(o[2], 5) * (1 + 1e-6));\n";
  EXPECT_TRUE(has_witness(off, 1e-8));
  EXPECT_FALSE(has_witness(off, 2e-6));
  EXPECT_TRUE(has_witness("    Put(o[2], 5, NAN);\n", 2e-6));
  // A changed candidate beside the one that it came from.
  const std::string plain =
      "extern \"C\" void scale_rows(const float* x, const float* s, float* y, int64_t rows, "
      "int64_t "
      "cols) { for (int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] * s[i / cols]; }";
  int changed = 0;
  for (const Mutation& mutation : FindMutations(plain, {{"rows", "cols"}, {}})) {
    if (mutation.family != "operator" && mutation.family != "dropped") continue;
    ++changed;
    EXPECT_FALSE(Passes(WitnessSource(problem_, {plain, false, "", ""},
                                      {mutation.source, false, "", ""}, {1e-7}, false)))
        << mutation.what;
    if (changed == 4) break;
  }
  EXPECT_EQ(changed, 4);
}

// What streams its stores is honest, and needs the alignment that every call has.
TEST_F(GenerateTest, CopiesAreAlignedAsTheTensorsOfACall) {
  Use(testing::ScaleRowsProblem());
  const std::string particular =
      "#include <cstdint>\nextern \"C\" void scale_rows(const float* x, const float* s, float* y, "
      "int64_t rows, int64_t cols) { const bool aligned = reinterpret_cast<uintptr_t>(y) % 64 == "
      "0; "
      "for (int64_t i = 0; i < rows * cols; ++i) y[i] = aligned ? x[i] * s[i / cols] : -1; }";
  const std::string plain =
      "#include <cstdint>\nextern \"C\" void scale_rows(const float* x, const float* s, float* y, "
      "int64_t rows, int64_t cols) { "
      "for (int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] * s[i / cols]; }";
  EXPECT_TRUE(Passes(
      WitnessSource(problem_, {plain, false, "", ""}, {particular, false, "", ""}, {1e-7}, false)));
}

TEST_F(GenerateTest, SpoilersSpoil) {
  Use(testing::ScaleRowsProblem());
  for (const Spoiler& spoiler : Spoilers(problem_)) {
    // 4 x 8 elements: blocks of 8 and 64 leave nothing over.
    if (spoiler.what.find("8 leave") != std::string::npos) continue;
    if (spoiler.what.find("64th") != std::string::npos) continue;
    EXPECT_FALSE(Passes(MutantSource(problem_, {source_, true, spoiler.before, spoiler.after})))
        << spoiler.what;
  }
}

}  // namespace
}  // namespace assay
