// wmma: what is loaded, multiplied and stored is the product, whatever the layout.
#include "emulator/ops/matrix_wmma.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/test_matchers.h"
#include "emulator/memory/device_memory.h"
#include "emulator/ops/mma_tile.h"
#include "emulator/testing/fake_warp.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using testing::HasSubstr;

struct ProductCase {
  std::string shape;
  Element element;
  std::string type;  // in wmma.mma, between the shape and .satfinite
  Element accumulator;
  int a_registers;  // as the PTX ISA lists them
  int b_registers;
};

std::vector<ProductCase> Products() {
  using enum Element;
  std::vector<ProductCase> cases;
  for (const std::string shape : {"m16n16k16", "m32n8k16", "m8n32k16"}) {
    const int a = shape == "m16n16k16" ? 2 : shape == "m32n8k16" ? 4 : 1;
    const int b = 4 / a;
    cases.push_back({shape, kF16, "f32.f32", kF32, 8, 8});
    cases.push_back({shape, kF16, "f16.f16", kF16, 8, 8});
    cases.push_back({shape, kBF16, "f32.bf16.bf16.f32", kF32, 2 * a, 2 * b});
    cases.push_back({shape, kS8, "s32.s8.s8.s32", kS32, a, b});
    cases.push_back({shape, kU8, "s32.u8.u8.s32", kS32, a, b});
  }
  cases.push_back({"m16n16k8", kTF32, "f32.tf32.tf32.f32", kF32, 4, 4});
  cases.push_back({"m8n8k4", kF64, "f64.f64.f64.f64.rn", kF64, 1, 1});
  cases.push_back({"m8n8k32", kS4, "s32.s4.s4.s32", kS32, 1, 1});
  cases.push_back({"m8n8k32", kU4, "s32.u4.u4.s32", kS32, 1, 1});
  cases.push_back({"m8n8k128", kB1, "s32.b1.b1.s32", kS32, 1, 1});
  return cases;
}

int AccumulatorRegistersOf(const ProductCase& c) {
  const Tile tile = ParseTile(c.shape);
  return tile.m * tile.n / kLanes / (c.accumulator == Element::kF16 ? 2 : 1);
}

// Small integers as patterns, and back.
uint64_t Encode(int value, Element element) {
  uint64_t bits = static_cast<uint64_t>(value);
  if (element == Element::kF64) {
    const double d = value;
    std::memcpy(&bits, &d, 8);
    return bits;
  }
  if (element == Element::kF32 || element == Element::kTF32 || element == Element::kBF16) {
    const float f = static_cast<float>(value);
    uint32_t word = 0;
    std::memcpy(&word, &f, 4);
    return element == Element::kBF16 ? word >> 16 : word;
  }
  if (element == Element::kF16) {
    if (value == 0) return 0;
    const int exponent = std::ilogb(value);
    return (value < 0 ? 0x8000u : 0u) | static_cast<uint32_t>((exponent + 15) << 10) |
           static_cast<uint32_t>((std::abs(value) << (10 - exponent)) & 1023);
  }
  return bits & ((uint64_t{1} << ElementBits(element)) - 1);
}

// A matrix in memory with a stride, element by element.
class Stored {
 public:
  Stored(std::vector<std::byte>* memory, size_t offset, int stride, bool row_major, Element element)
      : memory_(memory),
        offset_(offset),
        stride_(stride),
        row_major_(row_major),
        element_(element) {}
  void Set(int row, int column, int value) { Write(BitOf(row, column), Encode(value, element_)); }
  bool Is(int row, int column, int value) const {
    return Read(BitOf(row, column)) == Encode(value, element_);
  }

 private:
  size_t BitOf(int row, int column) const {
    const int index = row_major_ ? row * stride_ + column : column * stride_ + row;
    return offset_ * 8 + static_cast<size_t>(index * ElementBits(element_));
  }
  void Write(size_t at, uint64_t pattern) {
    for (size_t i = 0; i < static_cast<size_t>(ElementBits(element_)); ++i) {
      const std::byte bit = static_cast<std::byte>(1u << ((at + i) % 8));
      std::byte& byte = (*memory_)[(at + i) / 8];
      byte = (pattern >> i & 1) != 0 ? byte | bit : byte & ~bit;
    }
  }
  uint64_t Read(size_t at) const {
    uint64_t pattern = 0;
    for (size_t i = 0; i < static_cast<size_t>(ElementBits(element_)); ++i) {
      const auto byte = static_cast<uint64_t>((*memory_)[(at + i) / 8]);
      pattern |= (byte >> ((at + i) % 8) & 1) << i;
    }
    return pattern;
  }
  std::vector<std::byte>* const memory_;
  const size_t offset_;
  const int stride_;
  const bool row_major_;
  const Element element_;
};

enum class Where { kShared, kGlobal, kGeneric };

Operand BaseOf(FakeWarp* warp, Where where, size_t offset) {
  const Operand base = warp->NewRegister(where == Where::kShared ? Type::kB32 : Type::kB64);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (where == Where::kShared) {
      warp->Values<uint32_t>(base)[lane] = static_cast<uint32_t>(kSharedBase + offset);
    } else {
      warp->Values<uint64_t>(base)[lane] =
          (where == Where::kGlobal ? kGlobalBase : kSharedWindow + kSharedBase) + offset;
    }
  }
  return Address(base);
}

std::string SpaceText(Where where) {
  return where == Where::kShared ? ".shared" : where == Where::kGlobal ? ".global" : "";
}

Type RegisterType(Element element) {
  return element == Element::kF64 ? Type::kF64 : element == Element::kF32 ? Type::kF32 : Type::kB32;
}

// A whole product through memory, with A and B by rows or columns, and C and D likewise.
class Product {
 public:
  Product(const ProductCase& c, bool a_rows, bool b_rows, bool c_rows, Where where, bool fast,
          int padding)
      : c_(c),
        tile_(ParseTile(c.shape)),
        a_rows_(a_rows),
        b_rows_(b_rows),
        c_rows_(c_rows),
        where_(where),
        padding_(padding),
        random_(static_cast<uint32_t>(padding) + 5) {
    warp_.fast_accesses = fast;
  }

  void Run() {
    const int a_stride = (a_rows_ ? tile_.k : tile_.m) + Pad(c_.element);
    const int b_stride = (b_rows_ ? tile_.n : tile_.k) + Pad(c_.element);
    const int c_stride = (c_rows_ ? tile_.n : tile_.m) + Pad(c_.accumulator);
    Stored a(&Memory(), 0, a_stride, a_rows_, c_.element);
    Stored b(&Memory(), 8192, b_stride, b_rows_, c_.element);
    Stored c(&Memory(), 16384, c_stride, c_rows_, c_.accumulator);
    const std::vector<int> sums = Fill(&a, &b, &c);

    const std::vector<Operand> fa = warp_.NewRegisters(RegisterType(c_.element), c_.a_registers);
    const std::vector<Operand> fb = warp_.NewRegisters(RegisterType(c_.element), c_.b_registers);
    const std::vector<Operand> fc =
        warp_.NewRegisters(RegisterType(c_.accumulator), AccumulatorRegistersOf(c_));
    const std::string element(ElementName(c_.element));
    const std::string accumulator(ElementName(c_.accumulator));
    Execute("load.a", a_rows_, element, {Vector(fa), BaseOf(&warp_, where_, 0)}, a_stride);
    Execute("load.b", b_rows_, element, {Vector(fb), BaseOf(&warp_, where_, 8192)}, b_stride);
    Execute("load.c", c_rows_, accumulator, {Vector(fc), BaseOf(&warp_, where_, 16384)}, c_stride);
    const std::string bits = c_.element == Element::kB1 ? ".and.popc" : "";
    ASSERT_OK(warp_.Decode("wmma.mma" + bits + ".sync.aligned." + (a_rows_ ? "row." : "col.") +
                               (b_rows_ ? "row." : "col.") + c_.shape + "." + c_.type,
                           {Vector(fc), Vector(fa), Vector(fb), Vector(fc)}));
    EXPECT_EQ(warp_.info().flops, 2 * tile_.m * tile_.n * tile_.k);
    warp_.Run();
    Execute("store.d", c_rows_, accumulator, {BaseOf(&warp_, where_, 32768), Vector(fc)}, c_stride);
    ASSERT_TRUE(warp_.faults.empty()) << warp_.faults[0].message;
    const Stored d(&Memory(), 32768, c_stride, c_rows_, c_.accumulator);
    for (int row = 0; row < tile_.m; ++row) {
      for (int column = 0; column < tile_.n; ++column) {
        ASSERT_TRUE(d.Is(row, column, sums[static_cast<size_t>(row * tile_.n + column)]))
            << "row " << row << " column " << column;
      }
    }
  }

 private:
  std::vector<std::byte>& Memory() {
    return where_ == Where::kGlobal ? warp_.global : warp_.shared;
  }
  int Pad(Element element) const { return padding_ * 128 / ElementBits(element); }

  std::vector<int> Fill(Stored* a, Stored* b, Stored* c) {
    const bool bits = c_.element == Element::kB1;
    const int least = bits || c_.element == Element::kU8 || c_.element == Element::kU4 ? 0 : -2;
    const int count = bits ? 2 : 5;
    const auto draw = [&] {
      return static_cast<int>(random_() % static_cast<uint32_t>(count)) + least;
    };
    std::vector<int> a_values;
    std::vector<int> b_values;
    std::vector<int> sums;
    for (int i = 0; i < tile_.m * tile_.k; ++i) a_values.push_back(draw());
    for (int i = 0; i < tile_.k * tile_.n; ++i) b_values.push_back(draw());
    for (int row = 0; row < tile_.m; ++row) {
      for (int k = 0; k < tile_.k; ++k)
        a->Set(row, k, a_values[static_cast<size_t>(row * tile_.k + k)]);
    }
    for (int k = 0; k < tile_.k; ++k) {
      for (int column = 0; column < tile_.n; ++column)
        b->Set(k, column, b_values[static_cast<size_t>(k * tile_.n + column)]);
    }
    for (int row = 0; row < tile_.m; ++row) {
      for (int column = 0; column < tile_.n; ++column) {
        int sum = static_cast<int>(random_() % 9) - 4;
        c->Set(row, column, sum);
        for (int k = 0; k < tile_.k; ++k) {
          sum += a_values[static_cast<size_t>(row * tile_.k + k)] *
                 b_values[static_cast<size_t>(k * tile_.n + column)];
        }
        sums.push_back(sum);
      }
    }
    return sums;
  }

  void Execute(const std::string& action, bool rows, const std::string& type,
               std::vector<Operand> operands, int stride) {
    // Without padding the default stride must do.
    if (padding_ != 0) operands.push_back(Integer(stride));
    ASSERT_OK(warp_.Decode("wmma." + action + ".sync.aligned." + (rows ? "row." : "col.") +
                               c_.shape + SpaceText(where_) + "." + type,
                           operands));
    warp_.Run();
  }

  const ProductCase c_;
  const Tile tile_;
  const bool a_rows_, b_rows_, c_rows_;
  const Where where_;
  const int padding_;
  std::mt19937 random_;
  FakeWarp warp_;
};

class Wmma : public testing::TestWithParam<ProductCase> {};

TEST_P(Wmma, MultipliesWhateverTheLayout) {
  const ProductCase& c = GetParam();
  const bool small = ElementBits(c.element) < 8;
  for (int layouts = 0; layouts < 8; ++layouts) {
    const bool a_rows = (layouts & 1) != 0;
    const bool b_rows = (layouts & 2) != 0;
    if (small && (!a_rows || b_rows)) continue;
    for (const Where where : {Where::kShared, Where::kGlobal, Where::kGeneric}) {
      SCOPED_TRACE("layouts " + std::to_string(layouts) + " in" + SpaceText(where));
      Product(c, a_rows, b_rows, (layouts & 4) != 0, where, layouts % 2 == 0, 1 + layouts % 2)
          .Run();
    }
  }
  Product(c, true, false, true, Where::kShared, true, 0).Run();
  if (!small) Product(c, false, true, false, Where::kGlobal, true, 0).Run();
}

INSTANTIATE_TEST_SUITE_P(All, Wmma, testing::ValuesIn(Products()), [](const auto& info) {
  return info.param.shape + "_" + std::string(ElementName(info.param.element)) + "_" +
         std::string(ElementName(info.param.accumulator));
});

TEST(WmmaFragments, AreThoseOfMma) {
  // Element (row, column) of A is row * 16 + column; two of them are in a register.
  FakeWarp warp;
  for (uint16_t i = 0; i < 256; ++i) std::memcpy(&warp.shared[i * 2u], &i, 2);
  const std::vector<Operand> registers = warp.NewRegisters(Type::kB32, 8);
  ASSERT_OK(warp.Decode("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16",
                        {Vector(registers), BaseOf(&warp, Where::kShared, 0), Integer(16)}));
  warp.Run();
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + (i % 2) * 8;
      const int column = lane % 4 * 2 + (i / 2 % 2) * 8;
      ASSERT_EQ(warp.Values<uint16_t>(registers[static_cast<size_t>(i)])[2 * lane],
                row * 16 + column);
      ASSERT_EQ(warp.Values<uint16_t>(registers[static_cast<size_t>(i)])[2 * lane + 1],
                row * 16 + column + 1);
    }
  }
}

TEST(WmmaFragments, OfM8N32AreThoseOfTheTransposedProduct) {
  FakeWarp warp;
  for (uint32_t i = 0; i < 256; ++i) std::memcpy(&warp.shared[i * 4], &i, 4);
  const std::vector<Operand> registers = warp.NewRegisters(Type::kF32, 8);
  ASSERT_OK(warp.Decode("wmma.load.c.sync.aligned.row.m8n32k16.shared.f32",
                        {Vector(registers), BaseOf(&warp, Where::kShared, 0)}));
  warp.Run();
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t row = static_cast<uint32_t>(lane % 4 * 2 + i % 2);
      const uint32_t column = static_cast<uint32_t>(lane / 4 + i / 2 * 8);
      ASSERT_EQ(warp.Values<uint32_t>(registers[static_cast<size_t>(i)])[lane], row * 32 + column);
    }
  }
}

TEST(WmmaFaults, AlignmentOfBaseAndStride) {
  struct AlignmentCase {
    size_t offset;
    int stride;
    bool fine;
  };
  for (const auto& [offset, stride, fine] :
       {AlignmentCase{0, 24, true}, AlignmentCase{32, 16, true}, AlignmentCase{16, 16, false},
        AlignmentCase{0, 20, false}}) {
    FakeWarp warp;
    const std::vector<Operand> registers = warp.NewRegisters(Type::kB32, 8);
    ASSERT_OK(
        warp.Decode("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16",
                    {Vector(registers), BaseOf(&warp, Where::kShared, offset), Integer(stride)}));
    warp.Run();
    ASSERT_EQ(warp.faults.empty(), fine) << offset << " " << stride;
    if (!fine) {
      EXPECT_EQ(warp.faults[0].kind, FaultKind::kMisaligned);
      EXPECT_THAT(warp.faults[0].message,
                  HasSubstr("multiple of 32 bytes and its stride one of 16"));
    }
  }
}

TEST(WmmaFaults, OutOfBoundsStopsTheStore) {
  FakeWarp warp;
  const std::vector<Operand> registers = warp.NewRegisters(Type::kF32, 8);
  ASSERT_OK(
      warp.Decode("wmma.store.d.sync.aligned.row.m16n16k16.global.f32",
                  {BaseOf(&warp, Where::kGlobal, warp.global.size() - 512), Vector(registers)}));
  warp.Run();
  ASSERT_EQ(warp.faults.size(), 1u);
  EXPECT_EQ(warp.faults[0].kind, FaultKind::kOutOfBounds);
}

TEST(WmmaDecode, RefusesWhatNobodyEmulates) {
  FakeWarp warp;
  const Operand eight = Vector(warp.NewRegisters(Type::kB32, 8));
  const Operand address = BaseOf(&warp, Where::kShared, 0);
  for (const std::string opcode : {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f32",
                                   "wmma.load.a.sync.aligned.row.m16n16k8.shared.f16",
                                   "wmma.load.c.sync.aligned.row.m16n16k8.shared.s32",
                                   "wmma.load.a.sync.aligned.col.m8n8k32.shared.s4",
                                   "wmma.load.d.sync.aligned.row.m16n16k16.shared.f32",
                                   "wmma.load.a.sync.aligned.diagonal.m16n16k16.shared.f16",
                                   "wmma.keep.a.sync.aligned.row.m16n16k16.shared.f16",
                                   "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16.x"}) {
    EXPECT_THAT(warp.Decode(opcode, {eight, address}), StatusIs(absl::StatusCode::kUnimplemented))
        << opcode;
  }
  for (const std::string opcode :
       {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32.satfinite",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite",
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32",
        "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rz"}) {
    EXPECT_THAT(warp.Decode(opcode, {eight, eight, eight, eight}),
                StatusIs(absl::StatusCode::kUnimplemented))
        << opcode;
  }
  EXPECT_THAT(warp.Decode("wmma.load.a.sync.aligned.row.m16n16k16.local.f16", {eight, address}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(warp.Decode("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8", {eight, address}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8 registers; 2 are needed")));
  EXPECT_THAT(warp.Decode("wmma", {}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::emulator
