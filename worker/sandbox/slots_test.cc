#include "worker/sandbox/slots.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/sandbox/sandbox.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

std::set<int> AllSlots(const SlotShare& share) {
  std::set<int> slots = {share.builder, share.probe};
  for (int slot = share.runner_first * kSlotsPerRunner;
       slot < (share.runner_last + 1) * kSlotsPerRunner; ++slot) {
    slots.insert(slot);
  }
  return slots;
}

TEST(SlotClaimTest, TwoOnOneMachineShareNoSlot) {
  TemporaryDirectory folder = *TemporaryDirectory::Create("slots-test");
  const std::string locks = folder.path() + "/locks";
  ASSERT_OK_AND_ASSIGN(const SlotClaim one, SlotClaim::Take(locks));
  std::optional<SlotClaim> other;
  {
    ASSERT_OK_AND_ASSIGN(SlotClaim second, SlotClaim::Take(locks));
    other.emplace(std::move(second));
  }
  const std::set<int> ours = AllSlots(one.share());
  const SlotShare theirs = other->share();
  for (const int slot : AllSlots(theirs)) EXPECT_EQ(ours.count(slot), 0u) << slot;
  // What is given back is free again, and nothing else.
  other.reset();
  ASSERT_OK_AND_ASSIGN(const SlotClaim third, SlotClaim::Take(locks));
  EXPECT_EQ(third.share().builder, theirs.builder);
}

TEST(SlotClaimTest, AFullMachineSaysSo) {
  TemporaryDirectory folder = *TemporaryDirectory::Create("slots-test");
  std::vector<SlotClaim> claims;
  std::set<int> all;
  size_t count = 0;
  for (int i = 0; i < kSlotSharesMax; ++i) {
    ASSERT_OK_AND_ASSIGN(SlotClaim claim, SlotClaim::Take(folder.path()));
    const std::set<int> slots = AllSlots(claim.share());
    count += slots.size();
    all.insert(slots.begin(), slots.end());
    claims.push_back(std::move(claim));
  }
  EXPECT_EQ(all.size(), count);
  EXPECT_GE(*all.begin(), 0);
  EXPECT_LT(*all.rbegin(), kSandboxSlotsMax);
  EXPECT_THAT(SlotClaim::Take(folder.path()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("stop a worker first")));
}

TEST(SlotClaimTest, AFolderThatCannotBeWrittenSaysWhatToDo) {
  TemporaryDirectory folder = *TemporaryDirectory::Create("slots-test");
  const std::string file = folder.path() + "/file";
  ASSERT_OK(WriteFileAtomically(file, ""));
  for (const std::string& bad : {std::string("/proc/assay"), file, folder.path() + "/none/locks"}) {
    const absl::StatusOr<SlotClaim> claim = SlotClaim::Take(bad);
    EXPECT_THAT(claim, HasReason("SLOT_LOCKS_UNAVAILABLE"));
    EXPECT_THAT(claim, StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("make " + bad + " a folder that this user can write")));
  }
}

TEST(SlotClaimTest, ALockThatIsNoFileIsToBeRemoved) {
  for (const bool link : {true, false}) {
    TemporaryDirectory folder = *TemporaryDirectory::Create("slots-test");
    const std::string lock = folder.path() + "/slots-0";
    ASSERT_EQ(link ? symlink("/dev/null", lock.c_str()) : mkdir(lock.c_str(), 0755), 0);
    const absl::StatusOr<SlotClaim> claim = SlotClaim::Take(folder.path());
    EXPECT_THAT(claim, HasReason("SLOT_LOCKS_UNAVAILABLE"));
    EXPECT_THAT(claim,
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("remove " + lock)));
  }
}

TEST(ProcessSlotsTest, OneShareForTheWholeProcess) {
  ASSERT_OK(ProcessSlots());
  EXPECT_EQ(ProcessSlots()->builder, ProcessSlots()->builder);
  if (geteuid() != 0) GTEST_SKIP() << "only root takes user ids";
  // It is held: another process would not get it.
  ASSERT_OK_AND_ASSIGN(const SlotClaim other, SlotClaim::Take("/run/assay"));
  EXPECT_NE(other.share().builder, ProcessSlots()->builder);
}

}  // namespace
}  // namespace assay
