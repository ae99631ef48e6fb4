// Floating-point environments that candidates change: no later call computes with one, and one that
// is left changed is told.
#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "worker/guest/control_block.h"
#include "worker/testing/guest_fixture.h"

namespace assay {
namespace {

using FpEnvironmentGuestTest = GuestFixture;

// y[0] = x[0] / 4 in whatever environment holds when the call begins; what else it does follows
// from `mode`.
constexpr char kInvoke[] = R"(
#include <cfenv>
#include <cstdint>
#include <immintrin.h>
extern "C" void assay_invoke(void* const* tensors, const int64_t* axes) {
  volatile float* x = (volatile float*)tensors[0];
  volatile float* y = (volatile float*)tensors[1];
  y[0] = x[0] * 0.25f;
  const unsigned before = _mm_getcsr();
  if (axes[0] == 1) _mm_setcsr(before | 0x8040);       // flush, and take subnormals for zero
  if (axes[0] == 2) fesetround(FE_TOWARDZERO);         // of both units
  if (axes[0] == 3) { _mm_setcsr(before | 0x8040); y[1] = x[0] * 0.25f; _mm_setcsr(before); }
  if (axes[0] == 4) y[1] = 1.0f / (x[0] + 0.1f);       // raises flags, changes no control
}
)";

// Changes it as -ffast-math objects do, when it is loaded.
constexpr char kConstructor[] =
    "#include <immintrin.h>\n"
    "__attribute__((constructor)) static void Start() { _mm_setcsr(_mm_getcsr() | 0x8040); }\n";

TEST_F(FpEnvironmentGuestTest, NoCallInheritsOneAndWhatIsLeftIsTold) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the registers of x86-64";
#endif
  const std::string plain = Build("int unused;", kInvoke);
  const std::string constructor = Build(kConstructor, kInvoke);
  const struct {
    const char* name;
    const std::string& artifact;
    int64_t mode;
    uint32_t bits;
  } rows[] = {
      {"leaves it alone", plain, 0, 0},
      {"flushes", plain, 1, kFpFlushBits | kFpSubnormalsAreZeroBits},
      {"rounds to zero", plain, 2, kFpRoundingBits | 0x0c000000},
      {"puts it back", plain, 3, 0},
      {"raises flags", plain, 4, 0},
      {"when it is loaded", constructor, 0, 0},
      {"when it is loaded, and in calls", constructor, 1, kFpFlushBits | kFpSubnormalsAreZeroBits},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::unique_ptr<GuestSession> session = LoadedFrom(row.artifact, row.mode);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->fp_control_bits(), 0u);
    const float least = std::numeric_limits<float>::min();
    for (int call = 0; call < 3; ++call) {
      Floats(*session, 0)[0] = least;
      Floats(*session, 1)[0] = -1;
      ASSERT_TRUE(session->Call(GuestCache::kLeave, kCallMax).has_value())
          << session->ended()->message;
      EXPECT_EQ(Floats(*session, 1)[0], least / 4) << "call " << call;
      if (row.mode == 3) {
        EXPECT_EQ(Floats(*session, 1)[1], 0);
      }
    }
    EXPECT_EQ(session->fp_control_bits(), row.bits);
  }
}

}  // namespace
}  // namespace assay
