#include "worker/guest/tensor_memory.h"

#include <algorithm>

#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::ElementsAreArray;

TEST(BytesToTouchTest, TheEndThatTwoCachesHold) {
  const struct {
    std::vector<size_t> tensors;
    std::vector<size_t> touched;
  } rows[] = {
      {{}, {}},
      {{100, 50}, {100, 50}},           // fits
      {{150, 50}, {150, 50}},           // twice the cache, exactly
      {{151, 50}, {150, 50}},           // the first loses its start
      {{1000, 50, 20}, {130, 50, 20}},  // small ones behind a large one
      {{30, 300, 20}, {0, 180, 20}},    // what came before a large one is gone
      {{30, 300, 1000}, {0, 0, 200}},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(BytesToTouch(row.tensors, 100), ElementsAreArray(row.touched));
  }
}

TEST(TensorMemoryTest, TouchingChangesNothing) {
  for (const bool writable : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TensorMemory> memory,
                         TensorMemory::Create(1000, writable));
    std::fill(memory->span().begin(), memory->span().end(), std::byte{7});
    for (const size_t bytes : {0, 1, 64, 130, 1000, 2000}) memory->Touch(bytes);
    EXPECT_TRUE(std::all_of(memory->span().begin(), memory->span().end(),
                            [](std::byte b) { return b == std::byte{7}; }));
    EXPECT_EQ(memory->BrokenCanary(), std::nullopt);
  }
}

}  // namespace
}  // namespace assay
