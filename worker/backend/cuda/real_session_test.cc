// Sessions on a driver that looks real: libassay_fake_cuda.so.
#include "worker/backend/cuda/real_session.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/backend/cuda/device_session.h"
#include "worker/testing/cuda_fixture.h"
#include "worker/testing/fake_guest.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using ::testing::HasSubstr;

constexpr int64_t kElements = 100;
constexpr absl::Duration kCallMax = absl::Seconds(60);
constexpr uint32_t kPoison = 0x7fc5a5a5;

class RealSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(control_ = ResetFakeCuda(), nullptr);
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("real-session"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
    MakeTripleProblem(false, &problem_);
    FillTripleSpec(&spec_);
  }

  absl::StatusOr<std::unique_ptr<DeviceSessions>> Open() {
    DeviceOptions options;
    options.driver = FakeCudaPath();
    options.health = health_;
    return DeviceSessions::Open(options);
  }

  // Opens the device, and loads `ptx` for y = 3 x over n elements.
  absl::Status LoadAs(const std::string& ptx, int64_t n = kElements, uint64_t seed = 7) {
    session_.reset();
    devices_.reset();
    absl::StatusOr<std::unique_ptr<DeviceSessions>> devices = Open();
    if (!devices.ok()) return devices.status();
    devices_ = *std::move(devices);
    return LoadAgain(ptx, n, seed);
  }

  // Another session on the device that is open.
  absl::Status LoadAgain(const std::string& ptx, int64_t n = kElements, uint64_t seed = 7) {
    session_.reset();
    v1::Workload workload;
    workload.set_name("w");
    (*workload.mutable_axes())["n"] = n;
    absl::StatusOr<ResolvedWorkload> resolved = ResolveWorkload(problem_, workload);
    if (!resolved.ok()) return resolved.status();
    DeviceSessionOptions options;
    options.candidate = &spec_;
    options.workload = *resolved;
    options.seed = seed;
    absl::StatusOr<std::unique_ptr<GuestSession>> session = devices_->Make(std::move(options));
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    const std::string path = folder_->path() + "/candidate.ptx";
    absl::Status written = WriteFileAtomically(path, ptx);
    if (!written.ok()) return written;
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto bytes = static_cast<size_t>(n) * sizeof(float);
    return session_->Load(fd.get(), {{"x", bytes, false}, {"y", bytes, true}}, {n});
  }

  // Fills x, poisons y and calls.
  std::optional<CallTiming> Call(GuestCache cache = GuestCache::kLeave,
                                 absl::Duration timeout = kCallMax) {
    for (size_t i = 0; i < Floats(0).size(); ++i) Floats(0)[i] = static_cast<float>(i + 1);
    const std::span<std::byte> y = session_->Buffer(1);
    for (size_t at = 0; at < y.size(); at += sizeof(kPoison)) {
      std::memcpy(y.data() + at, &kPoison, sizeof(kPoison));
    }
    return session_->Call(cache, timeout);
  }

  std::span<float> Floats(size_t index) {
    const std::span<std::byte> bytes = session_->Buffer(index);
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  void ExpectTriples() {
    for (size_t i = 0; i < Floats(1).size(); ++i) {
      ASSERT_EQ(Floats(1)[i], 3 * static_cast<float>(i + 1)) << i;
    }
  }

  // The end of one call of `ptx`.
  GuestEnd EndOf(const std::string& ptx) {
    EXPECT_OK(LoadAs(ptx));
    if (session_ == nullptr) return GuestEnd{};
    if (!session_->ended().has_value()) {
      EXPECT_FALSE(Call().has_value());
    }
    return session_->ended().value_or(GuestEnd{});
  }

  FakeCudaControl* control_ = nullptr;
  DeviceHealthSource* health_ = nullptr;
  std::unique_ptr<TemporaryDirectory> folder_;
  v1::Problem problem_;
  v1::CandidateSpec spec_;
  std::unique_ptr<DeviceSessions> devices_;
  std::unique_ptr<GuestSession> session_;
};

TEST_F(RealSessionTest, HonestKernelIsRightAndHasATime) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  ASSERT_FALSE(devices_->is_emulated());
  for (const GuestCache cache : {GuestCache::kLeave, GuestCache::kWarm, GuestCache::kCold}) {
    const std::optional<CallTiming> timing = Call(cache);
    ASSERT_TRUE(timing.has_value()) << session_->ended()->message;
    ExpectTriples();
    // Four blocks, by the fake's clock.
    EXPECT_NEAR(timing->duration_ns, cache == GuestCache::kCold ? 2080 : 1040, 1);
    ASSERT_TRUE(timing->device.has_value());
    EXPECT_EQ(timing->device->gated, cache != GuestCache::kLeave);
    EXPECT_GT(timing->device->wall_ns, 0);
    EXPECT_FALSE(timing->device->health.has_value());
    EXPECT_FALSE(timing->outside_ns.has_value());
  }
  // Every launch that is timed waited on the device for the others.
  EXPECT_EQ(control_->candidate_launches, 3);
  EXPECT_EQ(control_->launches_behind_gate, 2);
  EXPECT_EQ(control_->gates_given_up, 0);
}

TEST_F(RealSessionTest, LaunchFloorIsThatOfAnEmptyKernel) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  const int before = control_->empty_launches;
  for (const GuestCache cache : {GuestCache::kWarm, GuestCache::kCold}) {
    const std::optional<CallTiming> timing = session_->CallEmpty(cache);
    ASSERT_TRUE(timing.has_value());
    EXPECT_NEAR(timing->duration_ns, 1000, 1);
    EXPECT_TRUE(timing->device->gated);
  }
  EXPECT_EQ(control_->empty_launches, before + 2);
  EXPECT_EQ(control_->candidate_launches, 0);
}

TEST_F(RealSessionTest, EveryCallFlushesAndWarmOnesReadTheTensorsAfterIt) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  const FakeCudaControl before = *control_;
  const std::optional<CallTiming> warm = Call(GuestCache::kWarm);
  ASSERT_TRUE(warm.has_value());
  EXPECT_EQ(control_->cache_flushes, before.cache_flushes + 1);
  for (int call = 0; call < 3; ++call) {
    const std::optional<CallTiming> cold = Call(GuestCache::kCold);
    ASSERT_TRUE(cold.has_value());
    // The fake's kernels take twice the time when nothing was read after a flush.
    EXPECT_NEAR(cold->duration_ns, 2 * warm->duration_ns, 1);
  }
  EXPECT_EQ(control_->cache_flushes, before.cache_flushes + 4);
  EXPECT_EQ(control_->zero_flushes, 0) << "a flush with zeros, or with what was there already";
  EXPECT_EQ(control_->persisting_resets, before.persisting_resets + 4);
  EXPECT_EQ(control_->shared_fills, before.shared_fills + 4);
}

TEST_F(RealSessionTest, WritesPastTheEndAreFoundAndNamed) {
  // The last thread writes one element past y, inside the arena: no device would complain.
  GuestEnd end = EndOf(TriplePtx(R"(  mul.f32 %v, %v, 0f40400000;
  st.global.f32 [%y], %v;
  st.global.f32 [%y+4], %v;)"));
  EXPECT_EQ(end.kind, GuestFault::OUT_OF_BOUNDS) << end.message;
  EXPECT_EQ(end.tensor, "y");
  EXPECT_EQ(end.byte_offset, kElements * 4);
  EXPECT_FALSE(end.device_unclean);
  end = EndOf(TriplePtx(R"(  st.global.f32 [%y], %v;
  setp.ne.s32 %q, %i, 0;
  @%q bra done;
  st.global.f32 [%x+-8], %v;)"));
  EXPECT_EQ(end.kind, GuestFault::OUT_OF_BOUNDS) << end.message;
  EXPECT_EQ(end.tensor, "x");
  EXPECT_EQ(end.byte_offset, -8);
}

TEST_F(RealSessionTest, WrittenInputsAreFoundAndNamed) {
  const GuestEnd end = EndOf(TriplePtx(R"(  st.global.f32 [%y], %v;
  setp.ne.s32 %q, %i, 17;
  @%q bra done;
  add.f32 %v, %v, %v;
  st.global.f32 [%x], %v;)"));
  EXPECT_EQ(end.kind, GuestFault::INPUT_WRITTEN) << end.message;
  EXPECT_EQ(end.tensor, "x");
  // Little-endian floats: 18 and 36 differ in their third byte first.
  EXPECT_EQ(end.byte_offset / 4, 17);
}

// y = 3 x at the first call, and 4 x, 5 x and so on at later ones if the counter lived on.
constexpr char kCountingBody[] = R"(  ld.global.u32 %r0, [counter];
  cvt.rn.f32.u32 %f0, %r0;
  mul.f32 %v, %v, %f0;
  st.global.f32 [%y], %v;
  setp.ne.s32 %q, %i, 0;
  @%q bra done;
  add.u32 %r0, %r0, 1;
  st.global.u32 [bumped], %r0;)";

TEST_F(RealSessionTest, ModuleVariablesAreAsNewAtEveryCall) {
  // The second kernel of the plan takes over what the first one counted.
  const std::string ptx =
      TriplePtx(kCountingBody,
                ".visible .global .align 4 .u32 counter = 3;\n.global .align 4 .u32 bumped;") +
      R"(.visible .entry next() {
  .reg .b32 %r;
  ld.global.u32 %r, [bumped];
  st.global.u32 [counter], %r;
  ret;
}
)";
  v1::Launch& next = *spec_.mutable_plan()->add_launches();
  next.set_kernel("next");
  next.add_grid("1");
  next.add_block("1");
  ASSERT_OK(LoadAs(ptx));
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(Call(call == 0 ? GuestCache::kLeave : GuestCache::kWarm).has_value())
        << session_->ended()->message;
    ExpectTriples();
  }
}

// A kernel that finds the runner's own buffers could keep answers in them.
TEST_F(RealSessionTest, NothingLivesOnInTheRunnersOwnMemory) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  ASSERT_NE(control_->flush_address, 0u);
  ASSERT_NE(control_->mapped, nullptr);
  const std::string keeping = absl::StrCat("  mov.u64 %d0, ", control_->flush_address + 4096, R"(;
  ld.global.u32 %r0, [%d0];
  setp.eq.u32 %q, %r0, 0x5eed;
  @%q mul.f32 %v, %v, 0f40000000;
  mul.f32 %v, %v, 0f40400000;
  st.global.f32 [%y], %v;
  setp.ne.s32 %q, %i, )",
                                           kElements - 1, R"(;
  @%q bra done;
  mov.u32 %r0, 0x5eed;
  st.global.u32 [%d0], %r0;)");
  ASSERT_OK(LoadAgain(TriplePtx(keeping)));
  for (const GuestCache cache : {GuestCache::kLeave, GuestCache::kLeave, GuestCache::kWarm,
                                 GuestCache::kWarm, GuestCache::kCold, GuestCache::kCold}) {
    std::fill_n(control_->mapped, control_->mapped_bytes, 0x5e);
    ASSERT_TRUE(Call(cache).has_value()) << session_->ended()->message;
    ExpectTriples();
    const std::span<const unsigned char> mapped(control_->mapped, control_->mapped_bytes);
    EXPECT_EQ(std::count(mapped.begin(), mapped.end(), 0x5e), 0);
  }
}

TEST_F(RealSessionTest, VariablesThatNobodyCanNameAreRefused) {
  const GuestEnd end = EndOf(TriplePtx("  .global .align 4 .u32 hidden;"));
  EXPECT_EQ(end.kind, GuestFault::LOAD_FAILED) << end.message;
}

TEST_F(RealSessionTest, KernelThatDoesNothingLeavesThePoison) {
  ASSERT_OK(LoadAs(TriplePtx("")));
  ASSERT_TRUE(Call().has_value());
  for (size_t i = 0; i < Floats(1).size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &Floats(1)[i], sizeof(bits));
    ASSERT_EQ(bits, kPoison) << i;
  }
}

TEST_F(RealSessionTest, WorkspacesHoldPoisonAtEveryCall) {
  // Copies the workspace out and leaves its own mark in it.
  v1::Workspace& workspace = *spec_.mutable_plan()->add_workspaces();
  workspace.set_name("scratch");
  workspace.set_bytes("4 * n");
  spec_.mutable_plan()->mutable_launches(0)->set_args(0, "scratch");
  ASSERT_OK(LoadAs(TriplePtx(R"(  st.global.f32 [%y], %v;
  mov.f32 %v, 0f3f800000;
  st.global.f32 [%x], %v;)")));
  for (int call = 0; call < 2; ++call) {
    ASSERT_TRUE(Call().has_value()) << session_->ended()->message;
    for (const float value : Floats(1)) ASSERT_TRUE(std::isnan(value));
  }
}

TEST_F(RealSessionTest, PlacesAreDrawnAnewForEveryCall) {
  // The kernel tells where its output lies.
  ASSERT_OK(LoadAs(TriplePtx(R"(  cvt.u32.u64 %r0, %y;
  mul.lo.u32 %r1, %i, 4;
  sub.u32 %r0, %r0, %r1;
  st.global.u32 [%y], %r0;)")));
  std::set<uint32_t> places;
  for (int call = 0; call < 20; ++call) {
    ASSERT_TRUE(Call().has_value());
    uint32_t place = 0;
    std::memcpy(&place, session_->Buffer(1).data(), sizeof(place));
    EXPECT_EQ(place % 256, 0u);
    places.insert(place);
  }
  EXPECT_GT(places.size(), 10u);
}

TEST_F(RealSessionTest, StickyErrorsLoseTheDevice) {
  const struct {
    const char* body;
    int kind;
    const char* check;
  } cases[] = {
      {"  mov.u64 %d0, 0;\n  st.global.f32 [%d0], %v;", GuestFault::DEVICE_FAULT, "OUT_OF_BOUNDS"},
      {"  st.global.f32 [%y+2], %v;", GuestFault::DEVICE_FAULT, "MISALIGNED"},
      {"  trap;", GuestFault::DEVICE_TRAP, ""},
  };
  for (const auto& c : cases) {
    const GuestEnd end = EndOf(TriplePtx(c.body));
    EXPECT_EQ(end.kind, c.kind) << c.body << ": " << end.message;
    EXPECT_EQ(end.check, c.check) << c.body;
    EXPECT_TRUE(end.device_unclean) << c.body;
    EXPECT_FALSE(devices_->Make({}).ok()) << "the context is lost";
  }
  // A fresh process, as the fake plays it, has a device that works.
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  ASSERT_TRUE(Call().has_value());
  ExpectTriples();
}

TEST_F(RealSessionTest, FailuresOfTheDeviceAreNotTheCandidates) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  control_->fail_next_kernel = cuda::CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_FALSE(Call().has_value());
  ASSERT_TRUE(session_->ended().has_value());
  EXPECT_EQ(session_->ended()->kind, GuestFault::KIND_UNSPECIFIED);
  EXPECT_THAT(session_->ended()->message, HasSubstr("ECC_UNCORRECTABLE"));
  EXPECT_TRUE(session_->ended()->device_unclean);
}

TEST_F(RealSessionTest, RefusedLaunchesAreThePlans) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  control_->fail_next_kernel = cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_FALSE(Call().has_value());
  ASSERT_TRUE(session_->ended().has_value());
  EXPECT_EQ(session_->ended()->kind, GuestFault::PLAN_INVALID);
  EXPECT_EQ(session_->ended()->check, "PLAN_OVER_LIMIT");
  EXPECT_FALSE(session_->ended()->device_unclean);
}

TEST_F(RealSessionTest, LocalMemoryThatNoDeviceHasIsTheCandidates) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  control_->fail_next_kernel = cuda::CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_FALSE(Call().has_value());
  ASSERT_TRUE(session_->ended().has_value());
  EXPECT_EQ(session_->ended()->kind, GuestFault::MEMORY_LIMIT);
  EXPECT_FALSE(session_->ended()->device_unclean);
}

TEST_F(RealSessionTest, KernelsThatDoNotEndAreTimedOut) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  ASSERT_TRUE(Call().has_value());
  control_->hangs = true;
  EXPECT_FALSE(Call(GuestCache::kWarm, absl::Milliseconds(1)).has_value());
  ASSERT_TRUE(session_->ended().has_value());
  EXPECT_EQ(session_->ended()->kind, GuestFault::TIMED_OUT);
  EXPECT_TRUE(session_->ended()->device_unclean);
}

TEST_F(RealSessionTest, BadModulesAreTheCandidates) {
  GuestEnd end = EndOf(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry triple(");
  EXPECT_EQ(end.kind, GuestFault::LOAD_FAILED);
  EXPECT_FALSE(end.device_unclean);
  end = EndOf(TriplePtx(kTripleBody, ".visible .global .align 4 .b8 huge[100000000];"));
  EXPECT_EQ(end.kind, GuestFault::MEMORY_LIMIT) << end.message;
  EXPECT_THAT(end.message, HasSubstr("workspace"));
  spec_.mutable_plan()->mutable_launches(0)->set_kernel("other");
  end = EndOf(TriplePtx(kTripleBody));
  EXPECT_EQ(end.kind, GuestFault::PLAN_INVALID);
  EXPECT_EQ(end.check, "KERNEL_NOT_FOUND");
}

TEST_F(RealSessionTest, OnlyBadTextsAreTheCandidatesWhenAModuleIsNotLoaded) {
  const struct {
    cuda::CUresult result;
    int kind;  // 0: not the candidate's
    const char* reason;
    const char* message;
  } cases[] = {
      {cuda::CUDA_ERROR_INVALID_PTX, GuestFault::LOAD_FAILED, "", "INVALID_PTX"},
      {cuda::CUDA_ERROR_INVALID_IMAGE, GuestFault::LOAD_FAILED, "", "INVALID_IMAGE"},
      {cuda::CUDA_ERROR_NO_BINARY_FOR_GPU, GuestFault::LOAD_FAILED, "", "NO_BINARY_FOR_GPU"},
      {cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, GuestFault::DRIVER_TOO_OLD, "", "install a later"},
      {cuda::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, GuestFault::DRIVER_TOO_OLD, "",
       "libnvidia-ptxjitcompiler"},
      {cuda::CUDA_ERROR_ECC_UNCORRECTABLE, 0, "DRIVER_FAILED", "ECC_UNCORRECTABLE"},
      {cuda::CUDA_ERROR_LAUNCH_FAILED, 0, "DRIVER_FAILED", "LAUNCH_FAILED"},
      {cuda::CUDA_ERROR_UNKNOWN, 0, "DRIVER_FAILED", "UNKNOWN"},
      {static_cast<cuda::CUresult>(12345), 0, "DRIVER_FAILED", "12345"},
  };
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  for (const auto& c : cases) {
    SCOPED_TRACE(c.message);
    control_->load_result = c.result;
    const absl::Status status = LoadAgain(TriplePtx(kTripleBody));
    const std::optional<GuestEnd>& end = session_->ended();
    EXPECT_EQ(status.ok(), c.kind != 0) << status;
    EXPECT_EQ(end.has_value() ? end->kind : 0, c.kind);
    EXPECT_EQ(GetReason(status), c.reason);
    EXPECT_THAT(status.ok() && end.has_value() ? end->message : std::string(status.message()),
                HasSubstr(c.message));
  }
  session_.reset();
  devices_.reset();
  control_->helper_load_result = cuda::CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  EXPECT_THAT(Open().status(),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("libnvidia-ptxjitcompiler")),
                    HasReason("DRIVER_FAILED")));
}

TEST_F(RealSessionTest, AModuleWithoutMemoryIsTheCandidatesWhereAnyGoodOneWouldFit) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  control_->load_result = cuda::CUDA_ERROR_OUT_OF_MEMORY;
  ASSERT_OK(LoadAgain(TriplePtx(kTripleBody)));
  ASSERT_TRUE(session_->ended().has_value());
  EXPECT_EQ(session_->ended()->kind, GuestFault::MEMORY_LIMIT) << session_->ended()->message;
  control_->device_bytes = 32 << 20;
  session_.reset();
  devices_.reset();
  ASSERT_OK_AND_ASSIGN(devices_, Open());
  EXPECT_THAT(LoadAgain(TriplePtx(kTripleBody)), HasReason("DEVICE_MEMORY_TOO_SMALL"));
}

TEST_F(RealSessionTest, TooLittleMemoryIsTheWorkspacesOrTheDevices) {
  control_->device_bytes = 16 << 20;
  v1::Workspace& workspace = *spec_.mutable_plan()->add_workspaces();
  workspace.set_name("scratch");
  workspace.set_bytes("32 * 1024 * 1024");
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  ASSERT_TRUE(session_->ended().has_value());
  EXPECT_EQ(session_->ended()->kind, GuestFault::MEMORY_LIMIT);
  EXPECT_THAT(session_->ended()->message, HasSubstr("workspaces (32 MiB)"));
  EXPECT_THAT(LoadAs(TriplePtx(kTripleBody), 8 << 20),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("smaller workload")),
                    HasReason("DEVICE_MEMORY_TOO_SMALL")));
}

TEST_F(RealSessionTest, DriversThatCannotBeUsedSayWhatToInstall) {
  DeviceOptions options;
  options.driver = TestLibrary("no_such_libcuda.so.1");
  EXPECT_THAT(DeviceSessions::Open(options).status(), HasReason("DRIVER_MISSING"));
  options.driver = TestLibrary("libassay_old_cuda.so");
  EXPECT_THAT(DeviceSessions::Open(options).status(), HasReason("DRIVER_TOO_OLD"));
  options.driver = FakeCudaPath();
  options.ordinal = 3;
  EXPECT_THAT(DeviceSessions::Open(options).status(), HasReason("DEVICE_NOT_FOUND"));
  control_->arch = 70;
  options.ordinal = 0;
  EXPECT_THAT(DeviceSessions::Open(options).status(), HasReason("DEVICE_TOO_OLD"));
}

TEST_F(RealSessionTest, SessionsShareAContextAndGiveTheirMemoryBack) {
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  const int contexts = control_->live_contexts;
  control_->device_bytes = 0;  // not read again while the context lives
  for (int session = 0; session < 20; ++session) {
    ASSERT_OK(LoadAgain(TriplePtx(kTripleBody), 4 << 20));
    ASSERT_FALSE(session_->ended().has_value());
  }
  EXPECT_EQ(control_->live_contexts, contexts);
  session_.reset();
  devices_.reset();
  EXPECT_EQ(control_->live_contexts, contexts - 1);
}

TEST_F(RealSessionTest, HealthIsReadAfterEveryTimedCall) {
  class Health : public DeviceHealthSource {
   public:
    std::optional<DeviceHealth> Sample() override { return DeviceHealth{1410, 1593, 40, 200.5, 4}; }
  } health;
  health_ = &health;
  ASSERT_OK(LoadAs(TriplePtx(kTripleBody)));
  const std::optional<CallTiming> timing = Call(GuestCache::kWarm);
  ASSERT_TRUE(timing.has_value());
  ASSERT_TRUE(timing->device->health.has_value());
  EXPECT_EQ(timing->device->health->sm_clock_mhz, 1410);
  EXPECT_EQ(timing->device->health->throttle_bits, 4u);
}

}  // namespace
}  // namespace assay
