// Work and writes outside of the timed call, and stores that must not be taken for them.
#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker/guest/control_block.h"
#include "worker/guest/guest_protocol.h"
#include "worker/testing/guest_fixture.h"

namespace assay {
namespace {

using HiddenWorkGuestTest = GuestFixture;

// Finds the control block among the main program's variables, claims completion, and only then does
// its work of 2 ms.
constexpr char kForger[] = R"(
#include <cstdint>
#include <link.h>
#include <time.h>
#include <unistd.h>
static volatile uint64_t* Find(const char* begin, const char* end) {
  for (const char* at = begin; at + 8 <= end; at += 8) {
    uint64_t value = *(const uint64_t*)at;
    if (value < 4096 || value % 4096 != 0) continue;
    if (write(1, (const void*)(value + ARMED), 4) != 4) continue;
    const volatile uint32_t* armed = (const volatile uint32_t*)(value + ARMED);
    if (*armed != 0 && *armed == *(const volatile uint32_t*)(value + COMMAND)) return (volatile uint64_t*)value;
  }
  return nullptr;
}
static int Look(dl_phdr_info* info, size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_W) == 0) continue;
    const char* begin = (const char*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (auto* block = Find(begin, begin + info->dlpi_phdr[i].p_memsz)) *(volatile uint64_t**)found = block;
  }
  return 1;  // the main program comes first
}
extern "C" void assay_invoke(void* const*, const int64_t*) {
  static volatile uint64_t* block;
  if (block == nullptr && (dl_iterate_phdr(Look, &block), block == nullptr)) return;
  block[DONE / 8] = block[GO / 8];
  timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  do clock_gettime(CLOCK_MONOTONIC, &b);
  while ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec < 2000000);
}
)";

std::string ForgerDefines() {
  return absl::StrCat("#define COMMAND ", offsetof(GuestControlBlock, command), "\n#define ARMED ",
                      offsetof(GuestControlBlock, armed), "\n#define GO ",
                      offsetof(GuestControlBlock, go), "\n#define DONE ",
                      offsetof(GuestControlBlock, done), "\n");
}

TEST_F(HiddenWorkGuestTest, WorkAfterForgedCompletionShows) {
  GuestOptions options = Options();
  const CoresApart apart(&options);
  std::unique_ptr<GuestSession> session =
      LoadedFrom(Build("int x;", ForgerDefines() + kForger), 0, 100, options);
  ASSERT_NE(session, nullptr);
  double outside_ns_max = 0;
  // On a busy machine the account of many calls is void, or less than the truth.
  for (int call = 0; call < 500 && outside_ns_max < 1e6; ++call) {
    const std::optional<CallTiming> timing = session->Call(GuestCache::kLeave, kCallMax);
    ASSERT_TRUE(timing.has_value()) << session->ended()->message;
    outside_ns_max = std::max(outside_ns_max, timing->outside_ns.value_or(0));
  }
  EXPECT_GE(outside_ns_max, 1e6) << "of 2 ms: " << session->output();
}

// The same, but what it does late, a tenth of a millisecond after completion, is the second half of
// its output.
TEST_F(HiddenWorkGuestTest, AnOutputWrittenAfterCompletionEndsTheGuest) {
  std::string forger(kForger);
  const size_t late = forger.find("2000000");
  ASSERT_NE(late, std::string::npos);
  forger.resize(late);
  forger += "100000);\n  for (int64_t i = 512; i < 1024; ++i) out[i] = 1;\n}\n";
  const size_t claim = forger.find("  block[DONE / 8]");
  ASSERT_NE(claim, std::string::npos);
  forger.insert(claim,
                "  volatile float* out = (volatile float*)tensors[1];\n"
                "  for (int64_t i = 0; i < 512; ++i) out[i] = 1;\n");
  const size_t arguments = forger.find("void* const*, const int64_t*) {\n  static");
  ASSERT_NE(arguments, std::string::npos);
  forger.replace(arguments, 12, "void* const* tensors");
  GuestOptions options = Options();
  const CoresApart apart(&options);
  std::unique_ptr<GuestSession> session =
      LoadedFrom(Build("int x;", ForgerDefines() + forger), 0, 1024, options);
  ASSERT_NE(session, nullptr);
  // On a busy machine completion is often seen only when it is too late.
  for (int call = 0; call < 2000 && !session->ended().has_value(); ++call) {
    for (float& value : Floats(*session, 1)) value = -1;
    (void)session->Call(GuestCache::kLeave, kCallMax);
  }
  ASSERT_TRUE(session->ended().has_value()) << session->output();
  EXPECT_EQ(session->ended()->kind, static_cast<int>(GuestFaultKind::kHiddenWork));
}

TEST_F(HiddenWorkGuestTest, StreamingStoresAreDoneAtCompletion) {
  const std::string artifact = Build("int x;", R"(
#include <cstdint>
#include <immintrin.h>
extern "C" void assay_invoke(void* const* tensors, const int64_t* axes) {
  int* y = (int*)tensors[1];
  for (int64_t i = 0; i < axes[1]; ++i) _mm_stream_si32(y + i, (int)i);
}
)");
  std::unique_ptr<GuestSession> session = LoadedFrom(artifact, 0, 4096);
  ASSERT_NE(session, nullptr);
  for (int call = 0; call < 200; ++call) {
    for (float& value : Floats(*session, 1)) value = -1;
    ASSERT_TRUE(session->Call(GuestCache::kLeave, kCallMax).has_value())
        << session->ended()->message;
  }
}

}  // namespace
}  // namespace assay
