#include "tests/gpu/cross_check.h"

#include <cstring>

#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "tests/gpu/gpu_check.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using Result = CrossRow::Result;

constexpr char kExact[] = "add.rn.f32 %f1, %f2, %f3;";
constexpr char kApproximate[] = "ex2.approx.ftz.f32 %f1, %f2;";

// One output, y, of four elements.
class CompareTest : public testing::Test {
 protected:
  CompareTest() {
    v1::Tensor& y = *problem_.add_tensors();
    y.set_name("y");
    y.mutable_tolerance()->set_kind(v1::TolerancePolicy::SCALED);
    y.mutable_tolerance()->set_relative_l2_max(1e-5);
    y.mutable_tolerance()->set_element_max(1e-4);
    candidate_.problem = &problem_;
    candidate_.problem_id = "p";
    candidate_.label = "c";
    workload_.name = "w";
    TensorShape x;
    x.name = "x";
    TensorShape shape;
    shape.name = "y";
    shape.is_output = true;
    shape.dims = {4};
    shape.elements = 4;
    shape.bytes = 16;
    shape.reference_element_bytes = 8;
    workload_.tensors = {x, shape};
  }

  static TensorBytes Bytes(const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return {{}, bytes};
  }

  CrossRow Compare(const char* ptx, const std::vector<float>& device,
                   const std::vector<float>& emulated) {
    candidate_.ptx = ptx;
    return CompareOutcomes(candidate_, workload_, Bytes(device), Bytes(emulated));
  }

  v1::Problem problem_;
  GpuCandidate candidate_;
  ResolvedWorkload workload_;
};

TEST_F(CompareTest, BitsDecideWhereTheyMustBeTheSame) {
  const CrossRow same = Compare(kExact, {1, 2, 3, 4}, {1, 2, 3, 4});
  EXPECT_EQ(same.result, Result::kSameBits);
  EXPECT_EQ(same.why_bits_may_differ, "");
  EXPECT_EQ(same.problem, "p");
  EXPECT_EQ(same.candidate, "c");
  EXPECT_EQ(same.workload, "w");
  const CrossRow off = Compare(kExact, {1, 2, 3.0000002f, 4}, {1, 2, 3, 4});
  EXPECT_EQ(off.result, Result::kDiffers);
  EXPECT_THAT(off.message, HasSubstr("every bit must be the same, first at element 2 of 4"));
  // Zeros have a sign too.
  EXPECT_EQ(Compare(kExact, {0, 2, 3, 4}, {-0.0f, 2, 3, 4}).result, Result::kDiffers);
}

TEST_F(CompareTest, ToleranceDecidesElsewhere) {
  const CrossRow near = Compare(kApproximate, {1, 2, 3.00001f, 4}, {1, 2, 3, 4});
  EXPECT_EQ(near.result, Result::kWithinTolerance) << near.message;
  EXPECT_EQ(near.why_bits_may_differ, "ex2.approx.ftz.f32");
  EXPECT_GT(near.element_error, 0);
  EXPECT_GT(near.relative_l2, 0);
  EXPECT_EQ(Compare(kApproximate, {1, 2, 3, 4}, {1, 2, 3, 4}).result, Result::kSameBits);
  const CrossRow far = Compare(kApproximate, {1, 2.01f, 3, 4}, {1, 2, 3, 4});
  EXPECT_EQ(far.result, Result::kDiffers);
  EXPECT_THAT(far.message,
              HasSubstr("first at element 1 of 4: 2.01 on the device, 2 on the emulated one"));
}

TEST_F(CompareTest, BitwiseOutputsHaveNoTolerance) {
  problem_.mutable_tensors(0)->mutable_tolerance()->set_kind(v1::TolerancePolicy::BITWISE);
  workload_.tensors[1].reference_element_bytes = 4;
  EXPECT_EQ(Compare(kApproximate, {1, 2, 3.0000002f, 4}, {1, 2, 3, 4}).result, Result::kDiffers);
  EXPECT_EQ(Compare(kApproximate, {1, 2, 3, 4}, {1, 2, 3, 4}).result, Result::kSameBits);
}

TEST(GpuCheckArgumentsTest, DefaultsLieBesideTheProgram) {
  ASSERT_OK_AND_ASSIGN(
      const GpuCheckOptions options,
      ParseGpuCheckArguments({"a.cu", "--seed", "7", "b.ptx", "--compile", "sm_90"}, "/opt/bin"));
  EXPECT_EQ(options.driver, "libcuda.so.1");
  EXPECT_EQ(options.emulator, "/opt/bin/libassay_emulated_cuda.so");
  EXPECT_EQ(options.helper, "/opt/bin/assay-nvrtc");
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.compile_arch, 90);
  EXPECT_THAT(options.candidates, testing::ElementsAre("a.cu", "b.ptx"));
  // All parts together leave room for the tests within eight minutes.
  EXPECT_LE(options.ceiling_time + options.check_time + options.run_time, absl::Minutes(6));
}

}  // namespace
}  // namespace assay
