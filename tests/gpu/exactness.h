// Whether two devices must agree on every bit of what a PTX module computes. Pure.
#ifndef ASSAY_TESTS_GPU_EXACTNESS_H_
#define ASSAY_TESTS_GPU_EXACTNESS_H_

#include <string>
#include <string_view>

namespace assay {

// Empty when they must: nothing but integer and IEEE operations in an order that the text fixes.
// Otherwise what leaves it open, e.g. "ex2.approx.ftz.f32", "atom.global.add.f32",
// "mma.sync...f32.f16.f16.f32", "mul.f32 and add.f32 may be fused".
std::string WhyBitsMayDiffer(std::string_view ptx);

}  // namespace assay

#endif  // ASSAY_TESTS_GPU_EXACTNESS_H_
