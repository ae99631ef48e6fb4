#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "base/test_matchers.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/module_check.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using ::testing::ElementsAre;

constexpr char kHead[] = ".version 8.5\n.target sm_90a, debug\n.address_size 64\n";

Module Parse(std::string_view text) {
  auto module = ParseModule(absl::StrCat(kHead, Av(text)));
  EXPECT_OK(module) << text;
  if (!module.ok()) return Module();
  EXPECT_EQ(CheckModule(*module), "") << text;
  return *std::move(module);
}

Variable ParseVariable(std::string_view text) {
  const Module module = Parse(absl::StrCat(".global .u32 other[8]; .func f;\n", Av(text)));
  return module.variables.size() < 2 ? Variable() : module.variables[1];
}

std::vector<std::string> Instructions(const Function& function) {
  std::vector<std::string> texts;
  for (const Instruction& i : function.instructions) texts.push_back(InstructionText(function, i));
  return texts;
}

TEST(ModuleTest, TypesAndSpaces) {
  for (int i = 1; i <= static_cast<int>(Type::kS16x2); ++i) {
    const Type type = static_cast<Type>(i);
    EXPECT_EQ(ParseType(TypeName(type)), type) << i;
    EXPECT_GT(TypeBytes(type), 0) << TypeName(type);
  }
  const struct {
    const char* name;
    Type type;
    int bytes;
  } types[] = {{"pred", Type::kPred, 1}, {"b128", Type::kB128, 16}, {"f16x2", Type::kF16x2, 4},
               {"bf16", Type::kBF16, 2}, {"tf32", Type::kTF32, 4},  {"s64", Type::kS64, 8},
               {"u8", Type::kU8, 1},     {"f64", Type::kF64, 8},    {"", Type::kNone, 0},
               {"f33", Type::kNone, 0}};
  for (const auto& t : types) {
    EXPECT_EQ(ParseType(t.name), t.type) << t.name;
    EXPECT_EQ(TypeBytes(t.type), t.bytes) << t.name;
  }
  for (const char* name : {"reg", "const", "global", "local", "param", "shared"}) {
    EXPECT_EQ(SpaceName(ParseSpace(name)), name);
    EXPECT_NE(ParseSpace(name), Space::kGeneric);
  }
  EXPECT_EQ(ParseSpace("generic"), Space::kGeneric);
  EXPECT_EQ(ParseSpace("shared::cta"), Space::kGeneric);
}

TEST(ModuleTest, FindsByNameInModulesMadeByHand) {
  Module module;
  module.functions.resize(2);
  module.functions[1].name = "f";
  EXPECT_EQ(module.FindFunction("f"), &module.functions[1]);
  EXPECT_EQ(module.FindFunction("g"), nullptr);
  EXPECT_EQ(module.FindVariable("f"), nullptr);
}

TEST(ParserTest, ModuleDirectives) {
  const Module module = Parse(
      "\t.file\t1 \"/src/a \\\"b\\\".cu\"\n.file 2 \"b\xff.h\", 1700000000, 1234\r\n"
      ".pragma \"nounroll\", \"x\";\n;\n"
      "@@DWARF .byte 1, 2, \"unended\n"
      ".section .debug_str\n{\n$L__info_string0:\n.b8 1,2,3\n.b32 .debug_abbrev\n.b64 "
      "$L__info_string0+4\n{ }\n}\n"
      ".loc 1 2 3\n// a comment\n/* one\nover lines */ .global .u32 x; // and /* one */\n");
  EXPECT_EQ(module.version_major, 8);
  EXPECT_EQ(module.version_minor, 5);
  EXPECT_EQ(module.target, "sm_90a");
  ASSERT_EQ(module.files.size(), 2u);
  EXPECT_EQ(module.files.at(1), "/src/a \\\"b\\\".cu");
  EXPECT_EQ(module.files.at(2), "b\\xff.h");
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_EQ(module.FindVariable("x"), &module.variables[0]);
  EXPECT_EQ(module.FindVariable("y"), nullptr);
}

TEST(ParserTest, Versions) {
  const struct {
    const char* text;
    int major;
    int minor;
  } cases[] = {{"9.0", 9, 0}, {"8.10", 8, 10}, {"1.4", 1, 4}};
  for (const auto& c : cases) {
    const auto module = ParseModule(absl::StrCat(".version ", c.text, "\n.target sm_75\n"));
    ASSERT_OK(module) << c.text;
    EXPECT_EQ(module->version_major, c.major);
    EXPECT_EQ(module->version_minor, c.minor);
  }
}

TEST(ParserTest, TextEndsAtNul) {
  const std::string text = absl::StrCat(kHead, ".global .u32 x;", std::string(1, '\0'), "garbage");
  const auto module = ParseModule(text);
  ASSERT_OK(module);
  EXPECT_EQ(module->variables.size(), 1u);
}

TEST(ParserTest, Variables) {
  const struct {
    const char* text;
    Space space;
    Type type;
    int64_t align;
    int64_t bytes;
    bool is_extern;
  } cases[] = {
      {".global .u32 x;", Space::kGlobal, Type::kU32, 4, 4, false},
      {".visible .global .align 16 .b8 x[24];", Space::kGlobal, Type::kB8, 16, 24, false},
      {".weak .const .f64 x[2][3];", Space::kConst, Type::kF64, 8, 48, false},
      {".common .global .b32 x[4*2];", Space::kGlobal, Type::kB32, 4, 32, false},
      {".shared .align 4 .b8 x[4224];", Space::kShared, Type::kB8, 4, 4224, false},
      {".extern .shared .align 16 .b8 x[];", Space::kShared, Type::kB8, 16, 0, true},
      {".extern .global .u64 x;", Space::kGlobal, Type::kU64, 8, 8, true},
      {".extern .global .u64 x[][4];", Space::kGlobal, Type::kU64, 8, 0, true},
      {".global .v4 .f32 x;", Space::kGlobal, Type::kF32, 16, 16, false},
      {".global .align 4 .v2 .u16 x[3];", Space::kGlobal, Type::kU16, 4, 12, false},
      {".global .attribute(.managed) .align 8 .b64 x;", Space::kGlobal, Type::kB64, 8, 8, false},
      {".global .b8 x[0];", Space::kGlobal, Type::kB8, 1, 0, false},
      {".extern .global .u32 x;\n.visible .global .u32 x = 1;", Space::kGlobal, Type::kU32, 4, 4,
       false},
      {".global .u32 x;\n.extern .global .u32 x;", Space::kGlobal, Type::kU32, 4, 4, false},
      {".global .b8 x[] = {1,2,3};", Space::kGlobal, Type::kB8, 1, 3, false},
      {".global .b8 x[][4] = {1,2,3,4,5};", Space::kGlobal, Type::kB8, 1, 8, false},
      {".global .b8 x[][4] = {{1},{2},{3}};", Space::kGlobal, Type::kB8, 1, 12, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const Variable x = ParseVariable(c.text);
    EXPECT_EQ(x.name, "x");
    EXPECT_EQ(x.space, c.space);
    EXPECT_EQ(x.type, c.type);
    EXPECT_EQ(x.align, c.align);
    EXPECT_EQ(x.bytes, c.bytes);
    EXPECT_EQ(x.is_extern, c.is_extern);
  }
  const Module module = Parse(".const .s32 a, b[2] = {1, 2}, c = 3;");
  ASSERT_EQ(module.variables.size(), 3u);
  EXPECT_EQ(module.variables[1].init.size(), 8u);
  EXPECT_EQ(module.variables[2].name, "c");
}

TEST(ParserTest, Images) {
  using Bytes = std::vector<uint8_t>;
  const struct {
    const char* text;
    Bytes want;
  } cases[] = {
      {".global .u32 x;", {}},
      {".global .u32 x = 0x01020304;", {4, 3, 2, 1}},
      {".global .u16 x = {5};", {5, 0}},
      {".global .s16 x = -2;", {0xfe, 0xff}},
      {".global .b8 x[4] = {1, 255, -1, 1+1};", {1, 255, 255, 2}},
      {".global .b8 x[8] = {1, 2};", {1, 2}},
      {".global .b8 x[2] = {};", {}},
      {".global .b8 x[2] = {1, };", {1}},
      {".global .b8 x[2][3] = {{1}, {2, 3}};", {1, 0, 0, 2, 3}},
      {".global .b8 x[2][3] = {1, 2, 3, {4, 5}};", {1, 2, 3, 4, 5}},
      {".global .b8 x[2][2][2] = {{{1}, {2}}, {{3, 4}}};", {1, 0, 2, 0, 3, 4}},
      {".const .f32 x = 1.5;", {0, 0, 0xc0, 0x3f}},
      {".const .f32 x[3] = {0f3F800000, 1, -0f3F800000};",
       {0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf}},
      {".const .f64 x = 0d3FF8000000000000;", {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}},
      {".const .f64 x = 0f3F800000;", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
      {".const .b32 x = 0f3F800000;", {0, 0, 0x80, 0x3f}},
      {".const .b64 x = 1.5;", {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}},
      {".global .v2 .u16 x[2] = {{1, 2}, {3, 4}};", {1, 0, 2, 0, 3, 0, 4, 0}},
      {".global .u8 x = WARP_SZ;", {32}},
      {".global .u64 x[2] = {other, 7};", {0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}},
  };
  for (const auto& c : cases) EXPECT_EQ(ParseVariable(c.text).init, c.want) << c.text;
}

TEST(ParserTest, Relocations) {
  const Variable x = ParseVariable(
      ".global .align 8 .u64 x[7] = {1, other, other+4, other-4, generic(other), generic(other)+36,"
      " generic(other+8)};");
  ASSERT_EQ(x.relocations.size(), 6u);
  const int64_t addends[] = {0, 4, -4, 0, 36, 8};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(x.relocations[i].symbol, "other");
    EXPECT_EQ(x.relocations[i].offset, static_cast<int64_t>(8 * (i + 1)));
    EXPECT_EQ(x.relocations[i].addend, addends[i]);
    EXPECT_EQ(x.relocations[i].generic, i >= 3);
  }
  const Variable later = ParseVariable(".global .b64 x = g;\n.func g { ret; }");
  ASSERT_EQ(later.relocations.size(), 1u);
  EXPECT_EQ(later.relocations[0].symbol, "g");
}

TEST(ParserTest, Headers) {
  const Module module = Parse(
      ".visible .entry k(.param .u64 .ptr .global .align 4 a, .param .u64 .ptr b,\n"
      "  .param .align 8 .b8 s[24], .param .b32 _, .param .u64 .ptr .generic .align 1 d)\n"
      ".maxntid 128, 2\n.reqntid 64\n.minnctapersm 2\n.maxnreg 32 .explicitcluster "
      ".reqnctapercluster 2, 1, 1\n"
      ".maxclusterrank 8 .pragma \"nounroll\";\n{ ret; }\n"
      ".func (.param .b32 r, .param .align 16 .b8 q[16]) f(.param .f64 a) .noreturn;\n"
      ".weak .func (.reg .u32 r) g(.reg .pred p, .reg .u64 a) { ret; }\n"
      ".extern .func h(.param .b64 _, .param .b8 v[]);\n"
      ".func .attribute(.unified(1,2)) u { }\n.entry e { }\n");
  ASSERT_EQ(module.functions.size(), 6u);
  const Function& k = *module.FindFunction("k");
  EXPECT_TRUE(k.is_entry);
  EXPECT_FALSE(k.is_declaration);
  EXPECT_THAT(k.max_threads, ElementsAre(128, 2, 1));
  EXPECT_THAT(k.required_threads, ElementsAre(64, 1, 1));
  EXPECT_EQ(k.location.ptx_line, 4);
  ASSERT_EQ(k.parameters.size(), 5u);
  EXPECT_EQ(k.parameters[0].name, "a");
  EXPECT_EQ(k.parameters[0].bytes, 8);
  EXPECT_EQ(k.parameters[0].align, 8);
  EXPECT_EQ(k.parameters[2].type, Type::kB8);
  EXPECT_EQ(k.parameters[2].bytes, 24);
  EXPECT_EQ(k.parameters[2].align, 8);
  const Function& f = *module.FindFunction("f");
  EXPECT_TRUE(f.is_declaration);
  ASSERT_EQ(f.returns.size(), 2u);
  EXPECT_EQ(f.returns[1].bytes, 16);
  EXPECT_THAT(f.max_threads, ElementsAre(0, 0, 0));
  const Function& g = *module.FindFunction("g");
  ASSERT_EQ(g.parameters.size(), 2u);
  EXPECT_TRUE(g.parameters[0].is_register);
  EXPECT_EQ(g.registers[static_cast<size_t>(g.returns[0].reg)].name, "r");
  EXPECT_EQ(g.registers[static_cast<size_t>(g.parameters[0].reg)].type, Type::kPred);
  EXPECT_TRUE(module.FindFunction("h")->is_declaration);
  EXPECT_EQ(module.FindFunction("h")->parameters[1].bytes, 0);
}

TEST(ParserTest, DefinitionReplacesDeclaration) {
  const Module module = Parse(
      ".func (.param .b32 r) f(.param .b32 a);\n.func g { call f; call g; ret; }\n"
      ".func (.param .b32 r) f(.param .b32 a) { ret; }\n.func f(.param .b32 a);\n");
  ASSERT_EQ(module.functions.size(), 2u);
  EXPECT_FALSE(module.FindFunction("f")->is_declaration);
  EXPECT_EQ(module.FindFunction("f")->instructions.size(), 1u);
}

TEST(ParserTest, RegistersOfRangesAreMadeWhenUsed) {
  const Module module = Parse(
      ".func f { .reg .b32 %r<1000>, %s; .reg .b64 %r1<5>; .reg .f32 a, b;\n"
      "x %r999, %r13, %r0, %r14, %r999, %s, a; }");
  const Function& f = module.functions[0];
  EXPECT_THAT(Instructions(f), ElementsAre("x %r999, %r13, %r0, %r14, %r999, %s, a"));
  ASSERT_EQ(f.registers.size(), 7u);  // %s, a, b, %r999, %r13, %r0, %r14
  EXPECT_EQ(f.instructions[0].operands[0].reg, f.instructions[0].operands[4].reg);
  EXPECT_EQ(f.registers[static_cast<size_t>(f.instructions[0].operands[0].reg)].type, Type::kB32);
  EXPECT_EQ(f.registers[0].name, "%s");
}

TEST(ParserTest, NestedScopesShadow) {
  const Module module = Parse(
      ".func f { .reg .b32 %r<9>, t; .reg .pred p;\n"
      "x %r1, t;\n{ .reg .b64 t; .reg .b64 %r<2>; x %r1, %r8, t;\n"
      " { .reg .f32 %r1; x %r1, t; } x %r1; }\nx %r1, t; }");
  const Function& f = module.functions[0];
  const auto type_of = [&](size_t instruction, size_t operand) {
    const int reg = f.instructions[instruction].operands[operand].reg;
    return f.registers[static_cast<size_t>(reg)].type;
  };
  EXPECT_EQ(type_of(0, 0), Type::kB32);
  EXPECT_EQ(type_of(1, 0), Type::kB64);
  EXPECT_EQ(type_of(1, 1), Type::kB32);
  EXPECT_EQ(type_of(1, 2), Type::kB64);
  EXPECT_EQ(type_of(2, 0), Type::kF32);
  EXPECT_EQ(type_of(2, 1), Type::kB64);
  EXPECT_EQ(type_of(3, 0), Type::kB64);
  EXPECT_EQ(type_of(4, 0), Type::kB32);
  EXPECT_EQ(f.instructions[4].operands[1].reg, f.instructions[0].operands[1].reg);
}

TEST(ParserTest, LabelsBelongToTheirScope) {
  const Module module = Parse(
      ".func f { .reg .pred p;\n"
      "{ @p bra L; x; L: bra L; }\n"
      "{ bra L; { bra L; bra out; } y; L: }\n"
      "L : bra L; z; out: }");
  const Function& f = module.functions[0];
  EXPECT_THAT(Instructions(f), ElementsAre("@p bra L", "x", "bra L", "bra L#1", "bra L#1",
                                           "bra out", "y", "bra L#2", "z"));
  EXPECT_EQ(f.labels.at("L"), 2);
  EXPECT_EQ(f.labels.at("L#1"), 7);
  EXPECT_EQ(f.labels.at("L#2"), 7);
  EXPECT_EQ(f.labels.at("out"), 9);
}

TEST(ParserTest, VariablesOfFunctions) {
  const Module module = Parse(
      ".global .u32 x;\n.entry k(.param .u32 n) {\n.local .align 16 .b8 depot[16];\n.shared .f32 "
      "tile[4][8];\n"
      ".extern .shared .b8 dynamic[];\n"
      "{ .param .b64 param0; st.param.b64 [param0+0], 1; }\n"
      "{ .param .align 8 .b8 param0[24]; st.param.b64 [param0+8], 1; }\n"
      "{ .shared .u32 x; st.shared.u32 [x], 1; }\nst.global.u32 [x], 1;\n"
      "{ .const .u32 c[2] = {1, 2}; ld.const.u32 _, [c+4]; .global .u32 x = 3; mov.u64 _, x; }\n}");
  const Function& k = module.functions[0];
  EXPECT_THAT(Instructions(k),
              ElementsAre("st.param.b64 [param0], 1", "st.param.b64 [param0#1+8], 1",
                          "st.shared.u32 [x#1], 1", "st.global.u32 [x], 1",
                          "ld.const.u32 _, [c@k+4]", "mov.u64 _, x#2@k"));
  ASSERT_EQ(k.variables.size(), 6u);
  EXPECT_EQ(k.variables[0].space, Space::kLocal);
  EXPECT_EQ(k.variables[1].bytes, 128);
  EXPECT_TRUE(k.variables[2].is_extern);
  EXPECT_EQ(k.variables[4].name, "param0#1");
  EXPECT_EQ(k.variables[4].bytes, 24);
  EXPECT_EQ(k.variables[5].name, "x#1");
  ASSERT_NE(module.FindVariable("c@k"), nullptr);
  EXPECT_EQ(module.FindVariable("c@k")->init.size(), 8u);
  ASSERT_NE(module.FindVariable("x#2@k"), nullptr);
}

TEST(ParserTest, PrototypesAndTargets) {
  const Module module = Parse(
      ".func f(.param .b32 a) { .reg .b64 %rd1; .reg .b32 %r1; .param .b32 r;\n"
      "prototype_0 : .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[24], .param .b32 _) "
      ".noreturn;\n"
      "call (r), %rd1, (a), prototype_0;\n"
      "Fdecls: .calltargets f, f;\ncall (r), %rd1, (a), Fdecls;\n"
      "ts: .branchtargets L1, L2, L1;\nbrx.idx.uni %r1, ts;\nL1: L2: ret;\n"
      "{ ts: .branchtargets L1, L2;\nbrx.idx %r1, ts; L2: } }");
  const Function& f = module.functions[0];
  EXPECT_THAT(Instructions(f),
              ElementsAre("call {r}, %rd1, {a}, prototype_0", "call {r}, %rd1, {a}, Fdecls",
                          "brx.idx.uni %r1, ts", "ret", "brx.idx %r1, ts#1"));
  EXPECT_THAT(f.branch_targets.at("ts"), ElementsAre("L1", "L2", "L1"));
  EXPECT_THAT(f.branch_targets.at("ts#1"), ElementsAre("L1", "L2#1"));
  EXPECT_EQ(f.labels.size(), 3u);
  EXPECT_EQ(f.labels.at("L2#1"), 5);
}

TEST(ParserTest, SourceLocations) {
  const Module module = Parse(
      ".func f { .reg .pred p;\nx;\n.loc 1 14 3\nx;\n"
      ".loc 2 7 1, function_name $L__info_string0, inlined_at 1 20 5\n@p\nx;\n"
      ".loc 1 0 5\nx;\n.loc 1 3 0, function_name $L__s+12, inlined_at 1 2 3\nx; }\n"
      ".func g { x; }");
  const struct {
    int ptx_line;
    int file;
    int line;
  } want[] = {{5, 0, 0}, {7, 1, 14}, {10, 2, 7}, {12, 2, 7}, {14, 1, 3}};
  const Function& f = *module.FindFunction("f");
  ASSERT_EQ(f.instructions.size(), std::size(want));
  for (size_t i = 0; i < std::size(want); ++i) {
    EXPECT_EQ(f.instructions[i].location.ptx_line, want[i].ptx_line) << i;
    EXPECT_EQ(f.instructions[i].location.file, want[i].file) << i;
    EXPECT_EQ(f.instructions[i].location.line, want[i].line) << i;
  }
  EXPECT_EQ(f.location.ptx_line, 4);
  EXPECT_EQ(f.location.file, 1);
  EXPECT_EQ(f.location.line, 14);
  const Function& g = *module.FindFunction("g");
  EXPECT_EQ(g.instructions[0].location.file, 0);
  EXPECT_EQ(g.location.line, 0);
}

TEST(ParserTest, InlineAssembly) {
  const Module module = Parse(
      ".entry k() { .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<2>;\r\n"
      "\t// begin inline asm\r\n\t{\n\t.reg.pred p; .reg .b16 lo,hi;;\n\t"
      "mov.b32 {lo, hi}, %r1; // part\n\tsetp.ne.b32 p,%r2,0;@p bra.uni DONE;\n\t"
      "LAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%r3], %r4;\n\t"
      "@!p bra LAB_WAIT;bra DONE;\n\tDONE:\n\t}\n\t// end inline asm\n"
      "{ .reg .pred p; LAB_WAIT: @p bra LAB_WAIT; bra DONE; DONE: }\n"
      "// begin inline asm\n\n// end inline asm\n.pragma \"nounroll\";\nret; }");
  EXPECT_THAT(
      Instructions(module.functions[0]),
      ElementsAre("mov.b32 {lo, hi}, %r1", "setp.ne.b32 p, %r2, 0", "@p bra.uni DONE",
                  "mbarrier.try_wait.parity.shared::cta.b64 p, [%r3], %r4", "@!p bra LAB_WAIT",
                  "bra DONE", "@p bra LAB_WAIT#1", "bra DONE#1", "ret"));
}

TEST(ParserTest, BothDialects) {
  const Module older = Parse(
      ".visible .entry _Z3addPf(\n\t.param .u64 _Z3addPf_param_0\n)\n.maxntid 256, 1, 1\n{\n"
      "\t.reg .pred \t%p<2>;\n\t.reg .f32 \t%f<3>;\n\t.reg .b64 \t%rd<3>;\n\n"
      "\tld.param.u64 \t%rd1, [_Z3addPf_param_0];\n\tcvta.to.global.u64 \t%rd2, %rd1;\n"
      "\tld.global.nc.f32 \t%f1, [%rd2+4];\n\tadd.ftz.f32 \t%f2, %f1, 0f3F800000;\n"
      "\tst.global.f32 \t[%rd2], %f2;\n$L__BB0_2:\n\tret;\n\n}");
  EXPECT_EQ(older.functions[0].instructions.size(), 6u);
  EXPECT_EQ(older.functions[0].registers[2].type, Type::kF32);
  const Module newer = Parse(
      ".visible .entry _Z3addPf(\n\t.param .u64 .ptr .align 1 _Z3addPf_param_0\n)\n{\n"
      "\t.reg .b32 \t%f<3>;\n\t.reg .b64 \t%rd<3>;\n\n"
      "\tld.param.b64 \t%rd1, [_Z3addPf_param_0];\n\tld.global.b32 \t%f1, [%rd1+4];\n"
      "\tadd.rn.f32 \t%f2, %f1, 0f3F800000;\n\tst.global.b32 \t[%rd1], %f2;\n\tret;\n}");
  EXPECT_EQ(newer.functions[0].registers[1].name, "%f1");
  EXPECT_EQ(newer.functions[0].registers[1].type, Type::kB32);
}

}  // namespace
}  // namespace assay::emulator
