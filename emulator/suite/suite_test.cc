// The seeded-bug suite: every planted bug is reported at its line, and its clean twin is not
// reported.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/suite/suite_case.h"
#include "emulator/testing/kernel_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

// A case is a file of this folder and its name here.
constexpr const char* kCases[] = {
    "global_read_past_end",
    "global_write_past_end",
    "global_read_before_start",
    "global_null",
    "global_gap",
    "global_far_away",
    "global_grid_too_large",
    "global_vector_past_end",
    "global_missing_guard",
    "global_atomic_past_end",
    "global_transposed_index",
    "global_load_of_shared_address",
    "use_after_free_read",
    "use_after_free_write",
    "input_written",
    "input_updated_atomically",
    "const_written",
    "const_read_past_end",
    "param_read_past_end",
    "local_write_past_end",
    "local_read_before_start",
    "shared_static_past_end",
    "shared_dynamic_past_end",
    "shared_before_start",
    "shared_past_window",
    "misaligned_word",
    "misaligned_pair",
    "misaligned_vector_store",
    "misaligned_shared",
    "misaligned_atomic",
    "uninitialized_output",
    "uninitialized_element",
    "uninitialized_padding",
    "uninitialized_shared",
    "uninitialized_halo",
    "uninitialized_local",
    "uninitialized_bytes",
    "uninitialized_atomic",
    "cached_between_launches",
    "shared_race_read_after_write",
    "shared_race_write_after_read",
    "shared_race_write_after_write",
    "shared_race_in_warp",
    "shared_race_warp_reduction",
    "shared_race_double_buffer",
    "shared_race_bytes",
    "shared_race_byte_in_warp",
    "shared_race_halves",
    "shared_race_same_place",
    "shared_race_broadcast",
    "shared_race_named_barrier",
    "shared_race_reduction",
    "shared_race_atomic_and_store",
    "global_race_two_blocks_write",
    "global_race_bytes",
    "global_race_half_in_warp",
    "global_race_read",
    "global_race_in_block",
    "global_race_last_block",
    "global_race_flag",
    "global_race_relaxed_flag",
    "global_race_look_back",
    "global_race_counter",
    "global_race_atomic_and_store",
    "global_race_grid_barrier",
    "barrier_half_warp",
    "barrier_lane_trip_counts",
    "barrier_warp_trip_counts",
    "barrier_two_places",
    "barrier_two_counts",
    "barrier_two_numbers",
    "barrier_counts_exited",
    "barrier_odd_count",
    "barrier_missing_arrival",
    "shuffle_from_exited_lane",
    "shuffle_from_unnamed_lane",
    "shuffle_without_itself",
    "shuffle_on_two_paths",
    "vote_in_branch",
    "shuffle_past_the_block",
    "warp_barrier_missing_lanes",
    "async_copy_without_wait",
    "async_copy_wait_too_weak",
    "async_copy_wait_before_commit",
    "async_copy_without_barrier",
    "async_copy_overwrites",
    "async_copy_overwrites_late",
    "async_copy_misaligned",
    "async_copy_past_end",
    "mbarrier_without_wait",
    "mbarrier_wrong_phase",
    "endless_loop",
    "flag_that_nobody_sets",
    "lock_in_a_warp",
    "trap",
    "assertion",
    "printf_flood",
    "branch_past_table",
};

struct Order {
  uint64_t seed = 0;
  int threads = 1;
};
constexpr Order kOrders[] = {{0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 1}, {2, 2}};

std::filesystem::path Folder() {
  const char* const source = std::getenv("ASSAY_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "emulator" / "suite";
}

SuiteCase ReadCase(const std::string& name) {
  std::ifstream file(Folder() / (name + ".ptx"));
  EXPECT_TRUE(file.good()) << "no file " << Folder() / (name + ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  absl::StatusOr<SuiteCase> parsed = ParseSuiteCase(name, text.str());
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *std::move(parsed) : SuiteCase();
}

std::string Text(const Dim3& at) { return absl::StrCat(at.x, ",", at.y, ",", at.z); }

class SuiteTest : public testing::TestWithParam<const char*> {};

// The marker that `fault` is at.
const SuiteMarker* MarkerOf(const SuiteCase& suite_case, const Fault& fault, bool in_order) {
  for (const SuiteMarker& marker : suite_case.markers) {
    if (in_order && !marker.in_order) continue;
    if (marker.line == fault.location.ptx_line && marker.kind == FaultName(fault.kind))
      return &marker;
  }
  return nullptr;
}

void ExpectBugFound(const SuiteCase& suite_case, const std::vector<Fault>& faults, bool in_order) {
  ASSERT_FALSE(faults.empty()) << suite_case.description;
  const Fault& first = faults[0];
  const SuiteMarker* const marker = MarkerOf(suite_case, first, in_order);
  ASSERT_NE(marker, nullptr) << "not what, or where, was expected first:\n" << Describe(faults);
  EXPECT_EQ(first.opcode, marker->opcode);
  EXPECT_EQ(first.kernel, "kernel");
  EXPECT_FALSE(first.message.empty());
  EXPECT_EQ(Text(first.block), Text(suite_case.block.value_or(first.block))) << Describe(faults);
  EXPECT_EQ(Text(first.thread), Text(suite_case.thread.value_or(first.thread))) << Describe(faults);
  std::set<std::string> kinds;
  for (const SuiteMarker& m : suite_case.markers) kinds.insert(m.kind);
  for (const Fault& fault : faults) {
    EXPECT_TRUE(kinds.contains(FaultName(fault.kind))) << "a fault of another kind:\n"
                                                       << Describe(faults);
  }
}

TEST_P(SuiteTest, BugIsReportedAtItsLine) {
  const SuiteCase suite_case = ReadCase(GetParam());
  for (const Order& order : kOrders) {
    SCOPED_TRACE(absl::StrCat("seed ", order.seed, ", host threads ", order.threads));
    const absl::StatusOr<SuiteOutcome> outcome =
        RunSuiteCase(suite_case, false, order.seed, order.threads);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ExpectBugFound(suite_case, outcome->faults, order.seed == 0 && order.threads == 1);
  }
}

TEST_P(SuiteTest, TwinIsCleanAndRight) {
  const SuiteCase suite_case = ReadCase(GetParam());
  for (const Order& order : kOrders) {
    SCOPED_TRACE(absl::StrCat("seed ", order.seed, ", host threads ", order.threads));
    const absl::StatusOr<SuiteOutcome> outcome =
        RunSuiteCase(suite_case, true, order.seed, order.threads);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_TRUE(outcome->faults.empty()) << Describe(outcome->faults);
    for (const SuiteResult& result : suite_case.results) {
      const auto buffer = outcome->buffers.find(result.buffer);
      ASSERT_NE(buffer, outcome->buffers.end()) << result.buffer;
      ASSERT_LT(result.index, buffer->second.size());
      EXPECT_EQ(buffer->second[result.index], result.value)
          << result.buffer << "[" << result.index << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SuiteTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

TEST(SuiteFolderTest, EveryFileIsACase) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path().stem());
  }
  EXPECT_THAT(files, testing::UnorderedElementsAreArray(std::begin(kCases), std::end(kCases)));
}

// The checks that a kernel can fail; what operations refuse (UNSUPPORTED) is theirs to test.
TEST(SuiteFolderTest, EveryKindOfFaultHasACase) {
  std::set<std::string> kinds;
  for (const char* const name : kCases) {
    for (const SuiteMarker& marker : ReadCase(name).markers) {
      if (marker.in_order) kinds.insert(marker.kind);
    }
  }
  for (int kind = 1; kind < static_cast<int>(FaultKind::kUnsupported); ++kind) {
    EXPECT_TRUE(kinds.contains(FaultName(static_cast<FaultKind>(kind))))
        << FaultName(static_cast<FaultKind>(kind));
  }
}

struct BadText {
  const char* text;
  const char* message;
};
TEST(SuiteCaseTest, RefusesWhatItDoesNotUnderstand) {
  constexpr BadText kTexts[] = {
      {"// CASE x\n// BUFER a f32 1 zero\nret; // BUG FAULT TRAP", "unknown line of the header"},
      {"// CASE x\n// BUFFER a f32 1 one\nret; // BUG FAULT TRAP", "unknown fill"},
      {"// CASE x\n// BUFFER a f32 1 zero kept\nret; // BUG FAULT TRAP", "unknown property"},
      {"// CASE x\n// LAUNCH grids=1\nret; // BUG FAULT TRAP", "unknown key|not a number"},
      {"// CASE x\n// LAUNCH grid=a\nret; // BUG FAULT TRAP", "not a number"},
      {"// CASE x\nret;\n//FIX exit;", "no line is marked"},
      {"// CASE x\ntrap; // FAULT TRAP", "the twin is the same"},
      {"// LAUNCH grid=1\ntrap; // BUG FAULT TRAP", "does not say what is wrong"},
  };
  for (const BadText& bad : kTexts) {
    const absl::Status status = ParseSuiteCase("x", bad.text).status();
    EXPECT_FALSE(status.ok()) << bad.text;
    EXPECT_THAT(std::string(status.message()), testing::ContainsRegex(bad.message));
  }
}

}  // namespace
}  // namespace assay::emulator
