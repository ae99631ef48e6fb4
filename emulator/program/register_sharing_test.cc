#include "emulator/program/register_sharing.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

struct SharingCase {
  const char* name;
  std::vector<RegisterUse> uses;  // instruction, register, writes
  std::vector<bool> starts_block;
  std::vector<int> bytes;
  std::vector<uint32_t> places;
};

std::vector<SharingCase> Cases() {
  return {
      {"OneAfterTheOther",
       {{0, 0, true}, {1, 0, false}, {2, 1, true}, {3, 1, false}},
       {true, false, false, false},
       {4, 4},
       {0, 0}},
      {"BothLive",
       {{0, 0, true}, {1, 1, true}, {2, 0, false}, {2, 1, false}},
       {true, false, false},
       {4, 4},
       {0, 1}},
      {"SourceOfTheSameInstructionIsKept",
       {{0, 0, true}, {1, 1, true}, {1, 0, false}, {2, 1, false}},
       {true, false, false},
       {4, 4},
       {0, 1}},
      {"AcrossBlocks",
       {{0, 0, true}, {2, 0, false}, {3, 1, true}, {3, 1, false}},
       {true, false, true, false},
       {4, 4},
       {0, 1}},
      {"ReadBeforeItIsWritten",
       {{0, 0, false}, {1, 0, true}, {2, 1, true}, {3, 1, false}},
       {true, false, false, false},
       {4, 4},
       {0, 1}},
      {"ReadByTheInstructionThatWritesItFirst",
       {{0, 0, true}, {0, 0, false}, {1, 1, true}, {2, 1, false}},
       {true, false, false},
       {4, 4},
       {0, 1}},
      {"WrittenForSomeLanes",
       {{0, 0, false}, {1, 0, false}, {2, 1, true}, {3, 1, false}},
       {true, false, false, false},
       {4, 4},
       {0, 1}},
      {"OfOneWidth",
       {{0, 0, true}, {1, 0, false}, {2, 1, true}, {3, 1, false}, {4, 2, true}, {5, 2, false}},
       {true, false, false, false, false, false},
       {4, 8, 4},
       {0, 1, 0}},
      {"NeverRead",
       {{0, 0, true}, {1, 1, true}, {2, 2, true}},
       {true, false, false},
       {4, 4, 4},
       {0, 0, 0}},
      {"Predicates",
       {{0, 0, true}, {1, 0, false}, {2, 1, true}, {3, 1, false}},
       {true, false, false, false},
       {0, 0},
       {0, 1}},
      {"InAnotherBlockAgain",
       {{0, 0, true}, {1, 0, false}, {2, 1, true}, {3, 1, false}},
       {true, false, true, false},
       {4, 4},
       {0, 0}},
  };
}

TEST(ShareRegistersTest, GivesPlacesToThoseThatLiveOneAfterTheOther) {
  for (const SharingCase& c : Cases()) {
    EXPECT_EQ(ShareRegisters(c.uses, c.starts_block, c.bytes), c.places) << c.name;
  }
}

}  // namespace
}  // namespace assay::emulator
