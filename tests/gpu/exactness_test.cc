#include "tests/gpu/exactness.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(ExactnessTest, NamesWhatLeavesBitsOpen) {
  const struct {
    const char* ptx;
    const char* why;
  } rows[] = {
      {"add.rn.f32 %f1, %f2, %f3;", ""},
      {"fma.rn.f32 %f1, %f2, %f3, %f4; add.s32 %r1, %r2, %r3; mul.lo.u32 %r1, %r1, 3;", ""},
      {"div.rn.f32 %f1, %f2, %f3; sqrt.rn.f64 %d1, %d2;", ""},
      {"add.f32 %f1, %f2, %f3;", ""},  // nothing to fuse it with
      {"mul.f32 %f1, %f2, %f3;\nadd.f32 %f1, %f1, %f3;", "mul.f32 and add.f32 may be fused"},
      {"mul.ftz.f32 %f1, %f2, %f3;\nsub.ftz.f32 %f1, %f1, %f3;",
       "mul.ftz.f32 and sub.ftz.f32 may be fused"},
      {"mul.rn.f32 %f1, %f2, %f3;\nadd.f32 %f1, %f1, %f3;", ""},
      {"@%p1 ex2.approx.ftz.f32 %f1, %f2;", "ex2.approx.ftz.f32"},
      {"div.full.f32 %f1, %f2, %f3;", "div.full.f32"},
      {"red.global.add.u32 [%rd1], 1;", "red.global.add.u32"},
      {"redux.sync.add.s32 %r1, %r2, %r3;", ""},
      {"atom.shared.cas.b32 %r1, [%rd1], %r2, %r3;", "atom.shared.cas.b32"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0}, {%r1}, {%r2}, {%f0};",
       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
      {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0}, {%r1}, {%r2}, {%r0};", ""},
      {"wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f0}, {%r1}, {%r2}, {%f0};",
       "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0}, [%rd1], %r2;", ""},
      {"mov.u64 %rd1, %globaltimer;", "%globaltimer"},
      // Comments and strings say nothing.
      {"// ex2.approx.f32\n/* red.global.add.u32 */ .file 1 \"sin.approx.f32\"\nmov.u32 %r1, 0;",
       ""},
      {"/* never closed red.global.add.u32", ""},
      {"", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(WhyBitsMayDiffer(row.ptx), row.why) << row.ptx;
}

}  // namespace
}  // namespace assay
