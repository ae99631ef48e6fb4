#include "emulator/ptx/operand.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/test_matchers.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/module_check.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using ::testing::ElementsAre;

// A kernel with registers of every kind and `body`.
std::string KernelText(const std::string& body) {
  return absl::StrCat(
      ".version 8.5\n.target sm_90\n.address_size 64\n"
      ".global .align 4 .b8 table[64];\n"
      ".func helper(.param .b32 a);\n"
      ".entry k(.param .u64 p, .param .align 8 .b8 s[24]) {\n"
      ".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<20>; .reg .f32 %f<4>;\n"
      ".reg .b64 %rd<4>; .reg .f64 %fd<4>; .reg .v4 .f32 %v; .reg .f16 low, high;\n"
      ".shared .align 16 .b8 tile[128];\n"
      "L1:\n",
      body, "\nret;\n}\n");
}

struct Case {
  const char* text;
  const char* want;
};

void ExpectInstruction(const Case& c) {
  SCOPED_TRACE(c.text);
  const auto module = ParseModule(KernelText(c.text));
  ASSERT_OK(module);
  EXPECT_EQ(CheckModule(*module), "");
  const Function& function = *module->FindFunction("k");
  ASSERT_EQ(function.instructions.size(), 2u);
  EXPECT_EQ(InstructionText(function, function.instructions[0]), c.want);
}

TEST(OperandTest, Kinds) {
  const Case cases[] = {
      {"add.s32 %r1, %r2, %r3;", "add.s32 %r1, %r2, %r3"},
      {"mov.b32 {low, high}, %r1;", "mov.b32 {low, high}, %r1"},
      {"mov.b64 %rd1, {%r1,%r2};", "mov.b64 %rd1, {%r1, %r2}"},
      {"mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x"},
      {"mov.u32 %r1, %nctaid.z;", "mov.u32 %r1, %nctaid.z"},
      {"mov.u64 %rd1, %clock64;", "mov.u64 %rd1, %clock64"},
      {"mov.u32 %r1, %lanemask_lt;", "mov.u32 %r1, %lanemask_lt"},
      {"mov.u32 %r1, %envreg31;", "mov.u32 %r1, %envreg31"},
      {"mov.u32 %r1, %pm0;", "mov.u32 %r1, %pm0"},
      {"mov.u64 %rd1, %pm7_64;", "mov.u64 %rd1, %pm7_64"},
      {"mov.u64 %rd1, table;", "mov.u64 %rd1, table"},
      {"mov.u64 %rd1, table+4;", "mov.u64 %rd1, table+4"},
      {"mov.u32 %r1, tile-8;", "mov.u32 %r1, tile-8"},
      {"mov.v4.f32 {%f0,%f1,%f2,%f3}, %v;",
       "mov.v4.f32 {%f0, %f1, %f2, %f3}, {%v.x, %v.y, %v.z, %v.w}"},
      {"mov.f32 %v.w, %v.r;", "mov.f32 %v.w, %v.x"},
      {"shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;", "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1"},
      {"setp.lt.and.s32 %p1|%p2, %r1, 4, !%p3;", "setp.lt.and.s32 %p1|%p2, %r1, 4, !%p3"},
      {"setp.eq.s32 %p1|_, %r1, 4;", "setp.eq.s32 %p1, %r1, 4"},
      {"lop3.or.b32 _|%p1, %r1, %r2, %r3, 0x80, 0;", "lop3.or.b32 _|%p1, %r1, %r2, %r3, 128, 0"},
      {"ld.global.v4.f32 {%f1, _, %f2, _}, [%rd1];", "ld.global.v4.f32 {%f1, _, %f2, _}, [%rd1]"},
      {"bra L1;", "bra L1"},
      {"trap;", "trap"},
      {"mma.sync.x {%r1,%r2}, {%r3}, {%r4}, {0, 1.5};",
       "mma.sync.x {%r1, %r2}, {%r3}, {%r4}, {0, 1.5d}"},
  };
  for (const Case& c : cases) ExpectInstruction(c);
}

TEST(OperandTest, Addresses) {
  const Case cases[] = {
      {"ld.shared.f32 %f1, [%r1];", "ld.shared.f32 %f1, [%r1]"},
      {"ld.global.f32 %f1, [%rd1+-128];", "ld.global.f32 %f1, [%rd1-128]"},
      {"ld.global.f32 %f1, [%rd1-128];", "ld.global.f32 %f1, [%rd1-128]"},
      {"ld.global.f32 %f1, [ %rd1 + 4*8-4 ];", "ld.global.f32 %f1, [%rd1+28]"},
      {"ld.param.u64 %rd1, [s+16];", "ld.param.u64 %rd1, [s+16]"},
      {"ld.global.u32 %r1, [table];", "ld.global.u32 %r1, [table]"},
      {"ld.global.u32 %r1, [table+-4].unified;", "ld.global.u32 %r1, [table-4]"},
      {"ld.shared.u32 %r1, [12];", "ld.shared.u32 %r1, [12]"},
      {"ld.shared.u32 %r1, [0x10+WARP_SZ];", "ld.shared.u32 %r1, [48]"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, "
       "{%r2, %r3}], [%r4];",
       "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, "
       "{%r2, %r3}], [%r4]"},
      {"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%rd1, %rd2, {%f1,%f2}];",
       "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd1, %rd2, {%f1, %f2}]"},
  };
  for (const Case& c : cases) ExpectInstruction(c);
}

TEST(OperandTest, Constants) {
  const Case cases[] = {
      {"x 10;", "x 10"},
      {"x 0x1F;", "x 31"},
      {"x 0X1fU;", "x 31"},
      {"x 017;", "x 15"},
      {"x 0b1011;", "x 11"},
      {"x 0;", "x 0"},
      {"x 42U;", "x 42"},
      {"x -5;", "x -5"},
      {"x +5;", "x 5"},
      {"x 18446744073709551615;", "x -1"},
      {"x 0xFFFFFFFFFFFFFFFF;", "x -1"},
      {"x -9223372036854775808;", "x -9223372036854775808"},
      {"x 7+3;", "x 10"},
      {"x (1<<3);", "x 8"},
      {"x (1<<3)|1, 2;", "x 9, 2"},
      {"x 2+3*4;", "x 14"},
      {"x (2+3)*4;", "x 20"},
      {"x 10-4-3;", "x 3"},
      {"x -7/2;", "x -3"},
      {"x -7%2;", "x -1"},
      {"x -1/2U;", "x 9223372036854775807"},
      {"x -8>>1;", "x -4"},
      {"x 0xF000000000000000>>60;", "x 15"},
      {"x 1<<64;", "x 0"},
      {"x -1>>99;", "x -1"},
      {"x (.u64)-1>>60;", "x 15"},
      {"x (.s64)0xFFFFFFFFFFFFFFFF<0;", "x 1"},
      {"x -1<0U;", "x 0"},
      {"x 1<2, 2<=1, 3>2, 3>=4, 1==1, 1!=1;", "x 1, 0, 1, 0, 1, 0"},
      {"x ~0, !3, !0;", "x -1, 0, 1"},
      {"x 6&3, 6^3, 6|3;", "x 2, 5, 7"},
      {"x 1&&0, 1||0, 2&&3;", "x 0, 1, 1"},
      {"x 1?2:3, 0?2:0?4:5;", "x 2, 5"},
      {"x WARP_SZ, WARP_SZ-1;", "x 32, 31"},
      {"x (-9223372036854775807-1)/-1;", "x -9223372036854775808"},
      {"x (-9223372036854775807-1)%-1;", "x 0"},
      {"x 0f3F800000;", "x 0x3f800000f"},
      {"x 0Fbf800000;", "x 0xbf800000f"},
      {"x -0f3F800000;", "x 0xbf800000f"},
      {"x 0d3FF8000000000000;", "x 1.5d"},
      {"x 0Dbff8000000000000;", "x -1.5d"},
      {"x 1.5, 1., 1e-3, 1.5E+2, 2e1, -2.5;", "x 1.5d, 1d, 0.001d, 150d, 20d, -2.5d"},
      {"x 1.5*2, 1.0/4, 1+0.5, 0f3F800000-3.0;", "x 3d, 0.25d, 1.5d, -2d"},
      {"x 1.5?1:2;", "x 1"},
      {"createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;",
       "createpolicy.fractional.L2::evict_last.b64 %rd1, 1d"},
  };
  for (const Case& c : cases) ExpectInstruction(c);
}

TEST(OperandTest, Calls) {
  const Case cases[] = {
      {"call.uni helper, (s);", "call.uni helper, {s}"},
      {"call helper;", "call helper"},
      {"call.uni (%r1), helper, (%r2, 5);", "call.uni {%r1}, helper, {%r2, 5}"},
      {"call.uni (s),\n helper,\n (\n s, \n p\n );", "call.uni {s}, helper, {s, p}"},
      {"call (_), helper, ();", "call {_}, helper, {}"},
      {"call (s), %rd1, (s), L1;", "call {s}, %rd1, {s}, L1"},
  };
  for (const Case& c : cases) ExpectInstruction(c);
}

TEST(OperandTest, GuardsAndOpcodes) {
  const Case cases[] = {
      {"@%p1 bra L1;", "@%p1 bra L1"},
      {"@!%p1 bra.uni L1;", "@!%p1 bra.uni L1"},
      {"@ ! %p1 exit;", "@!%p1 exit"},
      {"ld .global .u32 %r1, [%rd1];", "ld.global.u32 %r1, [%rd1]"},
  };
  for (const Case& c : cases) ExpectInstruction(c);
  const auto module =
      ParseModule(KernelText("ld.global.L1::no_allocate.L2::128B.v4.f32 %f1, [%rd1];"));
  ASSERT_OK(module);
  const Instruction& instruction = module->FindFunction("k")->instructions[0];
  EXPECT_EQ(instruction.mnemonic, "ld");
  EXPECT_THAT(instruction.modifiers,
              ElementsAre("global", "L1::no_allocate", "L2::128B", "v4", "f32"));
  EXPECT_TRUE(instruction.Has("L2::128B"));
  EXPECT_FALSE(instruction.Has("L2"));
}

TEST(OperandTest, SpecialRegisters) {
  for (const char* name :
       {"%tid", "%tid.w", "%cluster_ctaid.y", "%gridid", "%globaltimer_hi", "%envreg0", "%pm3",
        "%pm0_64", "%dynamic_smem_size", "%current_graph_exec"}) {
    EXPECT_TRUE(IsSpecialRegister(name)) << name;
  }
  for (const char* name : {"", "%", "tid.x", "%tid.q", "%tid.", "%laneid.x", "%envreg32",
                           "%envreg01", "%pm8", "%r1"}) {
    EXPECT_FALSE(IsSpecialRegister(name)) << name;
  }
}

}  // namespace
}  // namespace assay::emulator
