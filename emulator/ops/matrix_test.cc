// ldmatrix, stmatrix and movmatrix.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/test_matchers.h"
#include "emulator/memory/device_memory.h"
#include "emulator/testing/fake_warp.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Element (row, column) of matrix number i, where nothing else has the same.
uint16_t Mark(int i, int row, int column) {
  return static_cast<uint16_t>(0x1000 * (i + 1) + row * 16 + column);
}

// Byte offset of a matrix row: neither in order nor together.
uint32_t RowOffset(int i, int row) {
  return static_cast<uint32_t>((i * 8 + (row * 3) % 8) * 48 + 16 * i);
}

uint16_t Low(uint32_t word) { return static_cast<uint16_t>(word); }
uint16_t High(uint32_t word) { return static_cast<uint16_t>(word >> 16); }

struct TransferCase {
  int count;
  bool transposed;
  bool generic;
  bool fast;
};

class MatrixTransfer : public testing::TestWithParam<TransferCase> {
 protected:
  // The opcode, and registers with the addresses of the rows in the lanes that name them; the other
  // lanes have addresses that nobody may look at.
  std::string Opcode(const std::string& name) const {
    const TransferCase& c = GetParam();
    return name + ".sync.aligned.m8n8.x" + std::to_string(c.count) +
           (c.transposed ? ".trans" : "") + (c.generic ? ".b16" : ".shared.b16");
  }
  Operand RowAddresses(FakeWarp* warp) const {
    const TransferCase& c = GetParam();
    const Operand address = warp->NewRegister(c.generic ? Type::kB64 : Type::kB32);
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool named = lane < 8 * c.count;
      const uint64_t at = named ? kSharedBase + RowOffset(lane / 8, lane % 8) : 0xdead0001;
      if (c.generic) {
        warp->Values<uint64_t>(address)[lane] = kSharedWindow + at - 32;
      } else {
        warp->Values<uint32_t>(address)[lane] = static_cast<uint32_t>(at - 32);
      }
    }
    return Address(address, 32);
  }
  // What a lane's register of matrix i holds.
  uint32_t Expected(int i, int lane) const {
    const int row = lane / 4;
    const int column = lane % 4 * 2;
    if (GetParam().transposed) {
      return Mark(i, column, row) | static_cast<uint32_t>(Mark(i, column + 1, row)) << 16;
    }
    return Mark(i, row, column) | static_cast<uint32_t>(Mark(i, row, column + 1)) << 16;
  }
};

TEST_P(MatrixTransfer, Loads) {
  const TransferCase& c = GetParam();
  FakeWarp warp;
  warp.fast_accesses = c.fast;
  for (int i = 0; i < c.count; ++i) {
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) {
        const uint16_t mark = Mark(i, row, column);
        std::memcpy(&warp.shared[RowOffset(i, row) + static_cast<uint32_t>(column) * 2], &mark, 2);
      }
    }
  }
  const std::vector<Operand> registers = warp.NewRegisters(Type::kB32, c.count);
  ASSERT_OK(warp.Decode(Opcode("ldmatrix"), {Vector(registers), RowAddresses(&warp)}));
  warp.Run();
  ASSERT_TRUE(warp.faults.empty()) << warp.faults[0].lane;
  EXPECT_EQ(warp.fast_access_count, c.fast ? 1 : 0);
  for (int i = 0; i < c.count; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t value = warp.Values<uint32_t>(registers[static_cast<size_t>(i)])[lane];
      ASSERT_EQ(Low(value), Low(Expected(i, lane))) << "matrix " << i << " lane " << lane;
      ASSERT_EQ(High(value), High(Expected(i, lane))) << "matrix " << i << " lane " << lane;
    }
  }
}

TEST_P(MatrixTransfer, Stores) {
  const TransferCase& c = GetParam();
  FakeWarp warp;
  warp.fast_accesses = c.fast;
  const std::vector<Operand> registers = warp.NewRegisters(Type::kB32, c.count);
  for (int i = 0; i < c.count; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      warp.Values<uint32_t>(registers[static_cast<size_t>(i)])[lane] = Expected(i, lane);
    }
  }
  ASSERT_OK(warp.Decode(Opcode("stmatrix"), {RowAddresses(&warp), Vector(registers)}));
  warp.Run();
  ASSERT_TRUE(warp.faults.empty()) << warp.faults[0].lane;
  std::vector<std::byte> expected(warp.shared.size());
  for (int i = 0; i < c.count; ++i) {
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) {
        const uint16_t mark = Mark(i, row, column);
        std::memcpy(&expected[RowOffset(i, row) + static_cast<uint32_t>(column) * 2], &mark, 2);
      }
    }
  }
  EXPECT_TRUE(warp.shared == expected);
}

std::vector<TransferCase> TransferCases() {
  std::vector<TransferCase> cases;
  for (const int count : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      for (const bool generic : {false, true}) {
        for (const bool fast : {false, true}) cases.push_back({count, transposed, generic, fast});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, MatrixTransfer, testing::ValuesIn(TransferCases()),
                         [](const auto& info) {
                           const TransferCase& c = info.param;
                           return "x" + std::to_string(c.count) + (c.transposed ? "_trans" : "") +
                                  (c.generic ? "_generic" : "_shared") +
                                  (c.fast ? "_whole" : "_lanes");
                         });

TEST(Matrix, MovesTheTransposed) {
  FakeWarp warp;
  const Operand from = warp.NewRegister(Type::kB32);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4 * 2;
    warp.Values<uint32_t>(from)[lane] =
        Mark(0, row, column) | static_cast<uint32_t>(Mark(0, row, column + 1)) << 16;
  }
  // The destination may be the source.
  ASSERT_OK(warp.Decode("movmatrix.sync.aligned.m8n8.trans.b16", {from, from}));
  warp.Run();
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t value = warp.Values<uint32_t>(from)[lane];
    EXPECT_EQ(Low(value), Mark(0, lane % 4 * 2, lane / 4));
    EXPECT_EQ(High(value), Mark(0, lane % 4 * 2 + 1, lane / 4));
  }
}

struct Rows {
  explicit Rows(FakeWarp* warp, Type type = Type::kB32)
      : address(warp->NewRegister(type)), d(warp->NewRegisters(Type::kB32, 1)) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t at = kSharedBase + static_cast<uint64_t>(lane) * 16;
      if (type == Type::kB32) {
        warp->Values<uint32_t>(address)[lane] = static_cast<uint32_t>(at);
      } else {
        warp->Values<uint64_t>(address)[lane] = kSharedWindow + at;
      }
    }
  }
  Operand address;
  std::vector<Operand> d;
};

TEST(Matrix, ReportsAMisalignedRow) {
  FakeWarp warp;
  const Rows rows(&warp);
  warp.Values<uint32_t>(rows.address)[5] += 8;
  ASSERT_OK(warp.Decode("ldmatrix.sync.aligned.m8n8.x1.shared.b16",
                        {Vector(rows.d), Address(rows.address)}));
  warp.Run();
  ASSERT_EQ(warp.faults.size(), 1u);
  EXPECT_EQ(warp.faults[0].kind, FaultKind::kMisaligned);
  EXPECT_EQ(warp.faults[0].lane, 5);
}

TEST(Matrix, ReportsAGenericAddressThatIsNotShared) {
  for (const std::string name : {"ldmatrix", "stmatrix"}) {
    FakeWarp warp;
    const Rows rows(&warp, Type::kB64);
    warp.Values<uint64_t>(rows.address)[3] = kGlobalBase;
    std::vector<Operand> operands = {Vector(rows.d), Address(rows.address)};
    if (name == "stmatrix") std::swap(operands[0], operands[1]);
    ASSERT_OK(warp.Decode(name + ".sync.aligned.m8n8.x1.b16", operands));
    warp.Run();
    ASSERT_EQ(warp.faults.size(), 1u) << name;
    EXPECT_EQ(warp.faults[0].kind, FaultKind::kOutOfBounds);
    EXPECT_EQ(warp.faults[0].lane, 3);
    EXPECT_THAT(warp.faults[0].message, HasSubstr("not in shared memory"));
  }
}

TEST(Matrix, WantsTheWholeWarp) {
  FakeWarp warp;
  warp.live = 0xff;
  const Rows rows(&warp);
  ASSERT_OK(warp.Decode("ldmatrix.sync.aligned.m8n8.x1.shared.b16",
                        {Vector(rows.d), Address(rows.address)}));
  warp.Run(0xff);
  ASSERT_EQ(warp.faults.size(), 1u);
  EXPECT_EQ(warp.faults[0].kind, FaultKind::kAbsentLane);
}

// Kernels with asm of their own write what ptxas takes, which is more than compilers write.
TEST(Matrix, ShapeNumberAndTransStandInAnyOrder) {
  const struct {
    const char* order;
    const char* usual;
  } rows[] = {{"x1.m8n8", "m8n8.x1"},
              {"x1.trans.m8n8", "m8n8.x1.trans"},
              {"m8n8.trans.x1", "m8n8.x1.trans"},
              {"trans.m8n8.x1", "m8n8.x1.trans"}};
  for (const auto& row : rows) {
    for (const std::string name : {"ldmatrix", "stmatrix"}) {
      SCOPED_TRACE(name + row.order);
      uint32_t decoded[2] = {};
      for (int i = 0; i < 2; ++i) {
        FakeWarp warp;
        const Rows addresses(&warp);
        std::vector<Operand> operands = {Vector(addresses.d), Address(addresses.address)};
        if (name == "stmatrix") std::swap(operands[0], operands[1]);
        ASSERT_OK(warp.Decode(
            name + ".sync.aligned." + (i == 0 ? row.order : row.usual) + ".shared.b16", operands));
        decoded[i] = warp.op().extra;
      }
      EXPECT_EQ(decoded[0], decoded[1]);
    }
  }
}

TEST(Matrix, RefusesWhatNobodyEmulates) {
  FakeWarp warp;
  const Rows rows(&warp);
  const Operand address = Address(rows.address);
  for (const std::string opcode :
       {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32",
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16", "ldmatrix.sync.aligned.m8n8.shared.b16",
        "ldmatrix.sync.aligned.x1.shared.b16", "ldmatrix.sync.aligned.x1.x2.m8n8.shared.b16",
        "ldmatrix.sync.aligned.m8n8.x1.m8n8.shared.b16",
        "ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b32", "ldmatrix.aligned.m8n8.x1.shared.b16",
        "movmatrix.sync.aligned.m8n8.b16"}) {
    EXPECT_THAT(warp.Decode(opcode, {Vector(rows.d), address}),
                StatusIs(absl::StatusCode::kUnimplemented))
        << opcode;
  }
  EXPECT_THAT(warp.Decode("ldmatrix.sync.aligned.m8n8.x1.global.b16", {Vector(rows.d), address}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shared memory only")));
  EXPECT_THAT(warp.Decode("ldmatrix.sync.aligned.m8n8.x4.shared.b16", {Vector(rows.d), address}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 registers; 4 are needed")));
  EXPECT_THAT(warp.Decode("ldmatrix.sync.aligned.m8n8.x1.shared.b16", {Vector(rows.d)}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("operands")));
}

}  // namespace
}  // namespace assay::emulator
