// mma by the fragment layouts that the PTX ISA gives, element by element.
#include "emulator/ops/mma.h"

#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/test_matchers.h"
#include "emulator/testing/fake_warp.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Row and column of element i of the lane with %laneid >> 2 = g and %laneid % 4 = t.
using Layout = std::function<std::pair<int, int>(int i, int g, int t)>;

struct FragmentCase {
  std::string opcode;
  Element a;
  Element b;
  Element accumulator;
  int m;
  int n;
  int k;
  Layout a_layout;
  Layout b_layout;
};

// Accumulators of m16n8, and of m8n8.
std::pair<int, int> AccumulatorPlace(int m, int i, int g, int t) {
  return {m == 8 || i < 2 ? g : g + 8, 2 * t + (i & 1)};
}

Layout A(std::function<bool(int)> upper, std::function<int(int, int)> column) {
  return [=](int i, int g, int t) { return std::pair(upper(i) ? g : g + 8, column(i, t)); };
}
Layout B(std::function<int(int, int)> row) {
  return [=](int i, int g, int t) { return std::pair(row(i, t), g); };
}

std::vector<FragmentCase> Cases() {
  const auto any = [](int) { return true; };
  const auto below = [](int n) { return [n](int i) { return i < n; }; };
  const auto quarters = [](int n) {
    return [n](int i) { return i < n || (i >= 2 * n && i < 3 * n); };
  };
  const auto even = [](int i) { return i % 2 == 0; };
  // t * n + the low bits of i, and `step` more from element `from` on.
  const auto at = [](int n, int from = 1000, int step = 0) {
    return [=](int i, int t) { return n * t + (i & (n - 1)) + (i >= from ? step : 0); };
  };
  using enum Element;
  const std::string f = "mma.sync.aligned.";
  return {
      {f + "m16n8k8.row.col.f32.f16.f16.f32", kF16, kF16, kF32, 16, 8, 8, A(below(2), at(2)),
       B(at(2))},
      {f + "m16n8k8.row.col.f16.f16.f16.f16", kF16, kF16, kF16, 16, 8, 8, A(below(2), at(2)),
       B(at(2))},
      {f + "m16n8k16.row.col.f32.f16.f16.f32", kF16, kF16, kF32, 16, 8, 16,
       A(quarters(2), at(2, 4, 8)), B(at(2, 2, 8))},
      {f + "m16n8k16.row.col.f16.f16.f16.f16", kF16, kF16, kF16, 16, 8, 16,
       A(quarters(2), at(2, 4, 8)), B(at(2, 2, 8))},
      {f + "m16n8k16.row.col.f32.bf16.bf16.f32", kBF16, kBF16, kF32, 16, 8, 16,
       A(quarters(2), at(2, 4, 8)), B(at(2, 2, 8))},
      {f + "m16n8k8.row.col.f32.bf16.bf16.f32", kBF16, kBF16, kF32, 16, 8, 8, A(below(2), at(2)),
       B(at(2))},
      {f + "m16n8k4.row.col.f32.tf32.tf32.f32", kTF32, kTF32, kF32, 16, 8, 4, A(below(1), at(1)),
       B(at(1))},
      {f + "m16n8k8.row.col.f32.tf32.tf32.f32", kTF32, kTF32, kF32, 16, 8, 8, A(even, at(1, 2, 4)),
       B(at(1, 1, 4))},
      {f + "m16n8k16.row.col.f32.e4m3.e5m2.f32", kE4M3, kE5M2, kF32, 16, 8, 16, A(below(4), at(4)),
       B(at(4))},
      {f + "m16n8k32.row.col.f32.e5m2.e4m3.f32", kE5M2, kE4M3, kF32, 16, 8, 32,
       A(quarters(4), at(4, 8, 16)), B(at(4, 4, 16))},
      {f + "m16n8k32.row.col.f16.e4m3.e4m3.f16", kE4M3, kE4M3, kF16, 16, 8, 32,
       A(quarters(4), at(4, 8, 16)), B(at(4, 4, 16))},
      {f + "m8n8k16.row.col.s32.s8.u8.s32", kS8, kU8, kS32, 8, 8, 16, A(any, at(4)), B(at(4))},
      {f + "m16n8k16.row.col.s32.u8.s8.s32", kU8, kS8, kS32, 16, 8, 16, A(below(4), at(4)),
       B(at(4))},
      {f + "m16n8k32.row.col.satfinite.s32.s8.s8.s32", kS8, kS8, kS32, 16, 8, 32,
       A(quarters(4), at(4, 8, 16)), B(at(4, 4, 16))},
      {f + "m8n8k32.row.col.s32.s4.s4.s32", kS4, kS4, kS32, 8, 8, 32, A(any, at(8)), B(at(8))},
      {f + "m16n8k32.row.col.s32.s4.u4.s32", kS4, kU4, kS32, 16, 8, 32, A(below(8), at(8)),
       B(at(8))},
      {f + "m16n8k64.row.col.s32.u4.s4.s32", kU4, kS4, kS32, 16, 8, 64,
       A(quarters(8), at(8, 16, 32)), B(at(8, 8, 32))},
      {f + "m8n8k128.row.col.s32.b1.b1.s32.and.popc", kB1, kB1, kS32, 8, 8, 128, A(any, at(32)),
       B(at(32))},
      {f + "m16n8k128.row.col.s32.b1.b1.s32.and.popc", kB1, kB1, kS32, 16, 8, 128,
       A(below(32), at(32)), B(at(32))},
      {f + "m16n8k256.row.col.s32.b1.b1.s32.and.popc", kB1, kB1, kS32, 16, 8, 256,
       A(quarters(32), at(32, 64, 128)), B(at(32, 32, 128))},
      {f + "m8n8k4.row.col.f64.f64.f64.f64", kF64, kF64, kF64, 8, 8, 4, A(any, at(1)), B(at(1))},
      {f + "m16n8k4.row.col.f64.f64.f64.f64", kF64, kF64, kF64, 16, 8, 4, A(below(1), at(1)),
       B(at(1))},
      {f + "m16n8k8.row.col.f64.f64.f64.f64", kF64, kF64, kF64, 16, 8, 8, A(even, at(1, 2, 4)),
       B(at(1, 1, 4))},
      {f + "m16n8k16.row.col.f64.f64.f64.f64", kF64, kF64, kF64, 16, 8, 16,
       A(even, [](int i, int t) { return (i % 2 == 0 ? i * 2 : i * 2 - 2) + t; }),
       B([](int i, int t) { return i * 4 + t; })},
  };
}

// The pattern of a small integer.
uint64_t Encode(int value, Element element) {
  const uint64_t magnitude = static_cast<uint64_t>(std::abs(value));
  const auto sign = static_cast<uint64_t>(value < 0);
  const auto pick = [&](uint64_t one, uint64_t two, int sign_bit) {
    return (magnitude == 0   ? 0
            : magnitude == 1 ? one
                             : two) |
           (magnitude == 0 ? 0 : sign << sign_bit);
  };
  switch (element) {
    case Element::kF16:
      return pick(0x3c00, 0x4000, 15);
    case Element::kBF16:
      return pick(0x3f80, 0x4000, 15);
    case Element::kE4M3:
      return pick(0x38, 0x40, 7);
    case Element::kE5M2:
      return pick(0x3c, 0x40, 7);
    case Element::kF32:
    case Element::kTF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Element::kF64:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    default:
      return static_cast<uint64_t>(value) & ((uint64_t{1} << ElementBits(element)) - 1);
  }
}

int DecodeResult(uint64_t bits, Element element) {
  switch (element) {
    case Element::kF32:
      return static_cast<int>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case Element::kF64:
      return static_cast<int>(std::bit_cast<double>(bits));
    case Element::kF16: {
      const int exponent = static_cast<int>(bits >> 10 & 31) - 15;
      const double value =
          exponent < 0 ? 0 : std::ldexp(1024 + static_cast<int>(bits & 1023), exponent - 10);
      return static_cast<int>((bits & 0x8000) != 0 ? -value : value);
    }
    default:
      return static_cast<int32_t>(bits);
  }
}

int DrawFor(Element element, std::mt19937* random) {
  if (element == Element::kB1) return static_cast<int>((*random)() % 2);
  const bool is_unsigned = element == Element::kU8 || element == Element::kU4;
  return static_cast<int>((*random)() % 5) - (is_unsigned ? 0 : 2);
}

class Fragments {
 public:
  Fragments(FakeWarp* warp, Element element, int count)
      : warp_(warp), element_(element), bits_(ElementBits(element)) {
    const int register_bits = bits_ == 64 ? 64 : 32;
    registers_ =
        warp->NewRegisters(bits_ == 64 ? Type::kF64 : Type::kB32, count * bits_ / register_bits);
  }
  Operand operand() const { return Vector(registers_); }
  void Set(int lane, int i, uint64_t pattern) {
    if (bits_ == 64) {
      warp_->Values<uint64_t>(registers_[static_cast<size_t>(i)])[lane] = pattern;
      return;
    }
    const int bit = i * bits_;
    uint32_t& word = warp_->Values<uint32_t>(registers_[static_cast<size_t>(bit / 32)])[lane];
    const uint64_t mask = ((uint64_t{1} << bits_) - 1) << (bit % 32);
    word = static_cast<uint32_t>((word & ~mask) | pattern << (bit % 32));
  }
  uint64_t Get(int lane, int i) {
    if (bits_ == 64) return warp_->Values<uint64_t>(registers_[static_cast<size_t>(i)])[lane];
    const int bit = i * bits_;
    const uint32_t word = warp_->Values<uint32_t>(registers_[static_cast<size_t>(bit / 32)])[lane];
    return word >> (bit % 32) & ((uint64_t{1} << bits_) - 1);
  }

 private:
  FakeWarp* const warp_;
  const Element element_;
  const int bits_;
  std::vector<Operand> registers_;
};

class MmaFragments : public testing::TestWithParam<FragmentCase> {};

TEST_P(MmaFragments, LieAsThePtxIsaSays) {
  const FragmentCase& c = GetParam();
  std::mt19937 random(11);
  FakeWarp warp(89);
  const int a_count = c.m * c.k / kLanes;
  const int b_count = c.n * c.k / kLanes;
  const int d_count = c.m * c.n / kLanes;
  Fragments a(&warp, c.a, a_count);
  Fragments b(&warp, c.b, b_count);
  Fragments addends(&warp, c.accumulator, d_count);
  Fragments d(&warp, c.accumulator, d_count);
  std::vector<int> a_values(static_cast<size_t>(c.m * c.k));
  std::vector<int> b_values(static_cast<size_t>(c.k * c.n));
  std::vector<int> sums(static_cast<size_t>(c.m * c.n));
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < a_count; ++i) {
      const auto [row, column] = c.a_layout(i, lane >> 2, lane % 4);
      const int value = DrawFor(c.a, &random);
      a_values[static_cast<size_t>(row * c.k + column)] = value;
      a.Set(lane, i, Encode(value, c.a));
    }
    for (int i = 0; i < b_count; ++i) {
      const auto [row, column] = c.b_layout(i, lane >> 2, lane % 4);
      const int value = DrawFor(c.b, &random);
      b_values[static_cast<size_t>(row * c.n + column)] = value;
      b.Set(lane, i, Encode(value, c.b));
    }
    for (int i = 0; i < d_count; ++i) {
      const auto [row, column] = AccumulatorPlace(c.m, i, lane >> 2, lane % 4);
      const int value = static_cast<int>(random() % 5) - 2;
      sums[static_cast<size_t>(row * c.n + column)] = value;
      addends.Set(lane, i, Encode(value, c.accumulator));
    }
  }
  for (int row = 0; row < c.m; ++row) {
    for (int column = 0; column < c.n; ++column) {
      for (int k = 0; k < c.k; ++k) {
        sums[static_cast<size_t>(row * c.n + column)] +=
            a_values[static_cast<size_t>(row * c.k + k)] *
            b_values[static_cast<size_t>(k * c.n + column)];
      }
    }
  }
  ASSERT_OK(warp.Decode(c.opcode, {d.operand(), a.operand(), b.operand(), addends.operand()}));
  EXPECT_EQ(warp.info().op_class, OpClass::kTensor);
  EXPECT_EQ(warp.info().flops, 2 * c.m * c.n * c.k);
  warp.Run();
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < d_count; ++i) {
      const auto [row, column] = AccumulatorPlace(c.m, i, lane >> 2, lane % 4);
      ASSERT_EQ(DecodeResult(d.Get(lane, i), c.accumulator),
                sums[static_cast<size_t>(row * c.n + column)])
          << "lane " << lane << " element " << i;
    }
  }
  EXPECT_TRUE(warp.faults.empty());
}

INSTANTIATE_TEST_SUITE_P(All, MmaFragments, testing::ValuesIn(Cases()), [](const auto& info) {
  std::string name = info.param.opcode.substr(sizeof("mma.sync.aligned.") - 1);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

struct Ones {
  explicit Ones(FakeWarp* warp)
      : d(warp->NewRegisters(Type::kF32, 4)),
        a(warp->NewRegisters(Type::kB32, 4)),
        b(warp->NewRegisters(Type::kB32, 2)) {
    for (const auto& registers : {a, b}) {
      for (const Operand& operand : registers) {
        for (int lane = 0; lane < kLanes; ++lane)
          warp->Values<uint32_t>(operand)[lane] = 0x3c003c00;
      }
    }
  }
  std::vector<Operand> operands() const { return {Vector(d), Vector(a), Vector(b), Vector(d)}; }
  std::vector<Operand> d, a, b;
};
constexpr char kMma[] = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";

TEST(Mma, AccumulatesInPlace) {
  FakeWarp warp;
  const Ones ones(&warp);
  ASSERT_OK(warp.Decode(kMma, ones.operands()));
  warp.Run();
  warp.Run();
  for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(warp.Values<float>(ones.d[3])[lane], 32.0f);
}

TEST(Mma, FollowsTheArchitecture) {
  // -2^-25 beside 1 is below what sm_80 keeps and above what sm_90 does.
  for (const auto& [arch, expected] : {std::pair(80, 1.0f), std::pair(90, 1.0f - 0x1p-24f)}) {
    FakeWarp warp(arch);
    const Ones ones(&warp);
    for (int lane = 0; lane < kLanes; ++lane) {
      for (const Operand& operand : ones.a) warp.Values<uint32_t>(operand)[lane] = 0;
      warp.Values<float>(ones.d[0])[lane] = 1;
      if (lane % 4 == 0) warp.Values<uint32_t>(ones.a[0])[lane] = 0x8000 | 0x0800;
      if (lane % 4 == 0) warp.Values<uint32_t>(ones.b[0])[lane] = 0x0c00;
    }
    ASSERT_OK(warp.Decode(kMma, ones.operands()));
    warp.Run();
    EXPECT_EQ(warp.Values<float>(ones.d[0])[0], expected) << arch;
  }
}

TEST(Mma, WantsTheWholeWarp) {
  FakeWarp warp;
  const Ones ones(&warp);
  ASSERT_OK(warp.Decode(kMma, ones.operands()));
  // Lanes whose guard is false will never come.
  warp.Run(0x7fffffff);
  ASSERT_EQ(warp.faults.size(), 1u);
  EXPECT_EQ(warp.faults[0].kind, FaultKind::kAbsentLane);
  EXPECT_THAT(warp.faults[0].message, HasSubstr("lanes 0x80000000 pass over it by its guard"));
  EXPECT_EQ(warp.Values<float>(ones.d[0])[30], 16.0f);
  EXPECT_EQ(warp.Values<float>(ones.d[0])[31], 0.0f);
  // Those elsewhere in the program may.
  warp.faults.clear();
  warp.event = WarpEvent::kNone;
  warp.active = 0xffff;
  warp.op().handler(&warp, warp.op(), 0xffff);
  EXPECT_THAT(warp.parked, ElementsAre(0xffffu));
  EXPECT_TRUE(warp.faults.empty());
  // Those that have exited will not.
  warp.live = 0xffff;
  warp.Run(0xffff);
  ASSERT_EQ(warp.faults.size(), 1u);
  EXPECT_THAT(warp.faults[0].message, HasSubstr("lanes 0xffff0000 have exited"));
}

TEST(Mma, RefusesWhatNobodyEmulates) {
  FakeWarp warp;
  const auto b32 = [&](int count) { return Vector(warp.NewRegisters(Type::kB32, count)); };
  const std::string f = "mma.sync.aligned.";
  for (const std::string& opcode :
       {f + "m8n8k4.row.col.f32.f16.f16.f32", f + "m16n8k16.row.col.f32.f16.bf16.f32",
        f + "m16n8k16.row.col.f16.bf16.bf16.f16", f + "m16n8k16.row.col.f32.f16.f16.f16",
        f + "m16n8k16.col.col.f32.f16.f16.f32", f + "m16n8k16.row.row.f32.f16.f16.f32",
        f + "m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32",
        f + "m16n8k16.row.col.f32.f16.f16.f32.rn", f + "m16n8k128.row.col.s32.b1.b1.s32",
        f + "m16n8k16.row.col.s32.s8.s8.s32.xor.popc",
        f + "m16n8k16.row.col.satfinite.f32.f16.f16.f32", f + "m16n8k256.row.col.f32.f16.f16.f32",
        f + "m16n8k999999999999.row.col.f32.f16.f16.f32"}) {
    EXPECT_EQ(warp.Decode(opcode, {b32(4), b32(4), b32(2), b32(4)}).code(),
              absl::StatusCode::kUnimplemented)
        << opcode;
  }
  EXPECT_EQ(warp.Decode("mma.sync.aligned", {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(warp.Decode(kMma, {b32(4), b32(2), b32(2), b32(4)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(warp.Decode(kMma, {b32(4), b32(4), b32(2)}).code(), absl::StatusCode::kInvalidArgument);
  const Operand wide = Vector(warp.NewRegisters(Type::kB64, 4));
  EXPECT_EQ(warp.Decode(kMma, {b32(4), wide, b32(2), b32(4)}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
