// Verification through the runner's one entry, with fake guests.
#include "worker/runner/runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/runner/framing.h"
#include "worker/runner/guest_pool.h"
#include "worker/testing/fake_guest.h"
#include "worker/testing/runner_fixture.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RunnerTest, ARightCandidatePassesTheBattery) {
  AddWork("main", 64, true, false);
  AddWork("odd", 7, false, false);
  const RunnerReport report = Run(TripleCandidate());
  EXPECT_FALSE(report.has_error()) << report.DebugString();
  EXPECT_FALSE(report.has_candidate_fault()) << report.DebugString();
  ASSERT_EQ(report.workloads_size(), 2);
  const v1::Verification& main = report.workloads(0).verification();
  EXPECT_TRUE(main.passed()) << report.DebugString();
  EXPECT_THAT(main.cases(),
              ElementsAre("x1", "x3", "x0.01", "x-1", "mixed", "heavy_tail", "constant_rows",
                          "one_hot", "sorted", "cancelling", "exact_integers"));
  EXPECT_EQ(main.checked_call_count(), 12);  // x1 twice
  EXPECT_EQ(main.input_fingerprint().size(), 64u);
  ASSERT_EQ(main.outputs_size(), 1);
  EXPECT_EQ(main.outputs(0).element_count(), 64);
  EXPECT_LT(main.outputs(0).element_error_max(), 1e-6);
  EXPECT_THAT(report.workloads(1).verification().cases(), ElementsAre("x1"));
  EXPECT_THAT(report.walls(), ElementsAre("fake-wall"));
  EXPECT_THAT(report.output_log(), HasSubstr("fake output"));
}

// Which cases a large workload is shown follows from the nonce; x1 and the problem's own are always
// among them.
TEST_F(RunnerTest, ALargeWorkloadIsShownADrawnPartOfTheBattery) {
  v1::InputCase& own = *request_.mutable_problem()->add_input_cases();
  own.set_name("wide");
  own.add_overrides()->set_tensor("x");
  own.mutable_overrides(0)->mutable_distribution()->mutable_normal()->set_stddev(9);
  AddWork("measured", 100'000, true, false);
  AddWork("along", 100'001, true, false);
  request_.mutable_work(1)->mutable_workload()->set_verify_only(true);
  std::set<std::string> seen;
  for (uint64_t nonce = 1; nonce <= 8; ++nonce) {
    request_.set_nonce(nonce);
    const RunnerReport report = Run(TripleCandidate());
    ASSERT_EQ(report.workloads_size(), 2) << report.DebugString();
    const auto& measured = report.workloads(0).verification().cases();
    ASSERT_EQ(measured.size(), 5) << "x1, three that are drawn, the problem's own";
    EXPECT_EQ(measured[0], "x1");
    EXPECT_EQ(measured[4], "wide");
    seen.insert(measured.begin() + 1, measured.begin() + 4);
    const auto& along = report.workloads(1).verification().cases();
    ASSERT_EQ(along.size(), 2);
    EXPECT_EQ(along[0], "x1");
  }
  EXPECT_GE(seen.size(), 7u) << "of ten";
}

// The evidence of three candidates that a loose tolerance lets pass.
TEST_F(RunnerTest, PrecisionShowsInBitsAndOnIntegers) {
  v1::ArithmeticContract& contract = *request_.mutable_problem()->add_contracts();
  contract.set_name("f32");
  contract.set_accumulator(v1::F32);
  v1::TolerancePolicy& loose = *request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance();
  loose.set_relative_l2_max(1e-2);
  loose.set_element_max(1e-1);
  AddWork("main", 64, true, false);
  const auto narrow = [](float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xffffe000;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  const struct {
    const char* name;
    std::function<float(float)> triple;
    int zero_bits;
    bool is_exact;
  } rows[] = {
      {"honest", [](float x) { return 3 * x; }, 0, true},
      {"rounded operands", [&](float x) { return 3 * narrow(x); }, 11, false},
      {"rounded output", [&](float x) { return narrow(3 * x); }, 13, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const RunnerReport report = Run(Computing([&row](int, const Tensors& t) {
      for (int i = 0; i < 64; ++i) Floats(t[1])[i] = row.triple(Floats(t[0])[i]);
    }));
    ASSERT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
    ASSERT_EQ(report.workloads(0).precision_size(), 2);
    const internal::v1::PrecisionEvidence& nominal = report.workloads(0).precision(0);
    EXPECT_EQ(nominal.input_case(), "x1");
    EXPECT_EQ(nominal.tensor(), "y");
    EXPECT_EQ(nominal.zero_trailing_bits(), row.zero_bits);
    EXPECT_EQ(nominal.relative_l2() < 1e-7, row.is_exact);
    const internal::v1::PrecisionEvidence& integers = report.workloads(0).precision(1);
    EXPECT_EQ(integers.input_case(), "exact_integers");
    EXPECT_EQ(integers.element_count(), 64);
    EXPECT_EQ(integers.inexact_count() == 0, row.is_exact);
  }
  // Where the contract allows rounding nobody demands exact sums.
  contract.add_operand_roundings(v1::ArithmeticContract::TF32);
  EXPECT_EQ(Run(TripleCandidate()).workloads(0).precision_size(), 1);
}

struct WrongRow {
  const char* name;
  std::function<void(int call, const Tensors& tensors)> compute;
  std::string reason;
  std::string failed_case;
  int64_t index;
  bool nondeterministic;
};

TEST_F(RunnerTest, WrongCandidatesAreFoundWithPlaceAndReason) {
  AddWork("main", 64, true, false);
  const WrongRow rows[] = {
      {"wrong factor", [](int, const Tensors& t) { Multiply(t, 2.0f); }, "MISMATCH", "x1", 0,
       false},
      {"one element",
       [](int, const Tensors& t) {
         Multiply(t, 3.0f);
         Floats(t[1])[17] += 1.0f;
       },
       "MISMATCH", "x1", 17, false},
      {"nothing written", [](int, const Tensors&) {}, "OUTPUT_NOT_WRITTEN", "x1", 0, false},
      {"last not written",
       [](int, const Tensors& t) {
         float kept;
         std::memcpy(&kept, Floats(t[1]) + 63, sizeof kept);
         Multiply(t, 3.0f);
         std::memcpy(Floats(t[1]) + 63, &kept, sizeof kept);
       },
       "OUTPUT_NOT_WRITTEN", "x1", 63, false},
      {"NaN",
       [](int, const Tensors& t) {
         Multiply(t, 3.0f);
         Floats(t[1])[5] = std::numeric_limits<float>::quiet_NaN();
       },
       "NAN_OUTPUT", "x1", 5, false},
      {"sign ignored", [](int call, const Tensors& t) { Multiply(t, call <= 4 ? 3.0f : -3.0f); },
       "MISMATCH", "x-1", 0, false},
      {"wrong at the second call",
       [](int call, const Tensors& t) { Multiply(t, call == 2 ? 2.0f : 3.0f); }, "MISMATCH", "x1",
       0, true},
      {"wrong at the first call only",
       [](int call, const Tensors& t) { Multiply(t, call == 1 ? 2.0f : 3.0f); }, "MISMATCH", "x1",
       0, true},
  };
  for (const WrongRow& row : rows) {
    SCOPED_TRACE(row.name);
    const RunnerReport report = Run(Computing(row.compute));
    ASSERT_EQ(report.workloads_size(), 1) << report.DebugString();
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_FALSE(work.verification().passed());
    EXPECT_EQ(work.reason(), row.reason);
    EXPECT_EQ(work.nondeterministic(), row.nondeterministic);
    EXPECT_EQ(work.verification().failed_case(), row.failed_case);
    ASSERT_TRUE(work.verification().has_first_mismatch());
    EXPECT_THAT(work.verification().first_mismatch().index(), ElementsAre(row.index));
  }
}

TEST_F(RunnerTest, UnwrittenElementsAreCounted) {
  AddWork("main", 64, true, false);
  const RunnerReport report = Run(Computing([](int, const Tensors& t) {
    const float* x = Floats(t[0]);
    for (int i = 0; i < 60; ++i) Floats(t[1])[i] = 3.0f * x[i];
  }));
  const v1::OutputCheck& check = report.workloads(0).verification().outputs(0);
  EXPECT_EQ(check.unwritten_count(), 4);
  EXPECT_EQ(check.wrong_count(), 4);
  EXPECT_EQ(report.workloads(0).verification().first_mismatch().index(0), 60);
}

// Without declared cases beyond x1, a constant answer must still meet a second content.
TEST_F(RunnerTest, AReplayedFirstAnswerIsWrongEvenWhenThereIsOneCase) {
  request_.mutable_problem()->mutable_tensors(0)->set_scalable(false);
  AddWork("main", 64, true, false);
  std::vector<std::byte> first;
  const RunnerReport report = Run(Computing([&first](int call, const Tensors& t) {
    if (call == 1) {
      Multiply(t, 3.0f);
      first.assign(t[1].begin(), t[1].end());
    }
    std::memcpy(t[1].data(), first.data(), first.size());
  }));
  EXPECT_FALSE(report.workloads(0).verification().passed());
  EXPECT_EQ(report.workloads(0).verification().failed_case(), "x1 redrawn");
}

TEST_F(RunnerTest, GuestEndsAreReportedWithWorkloadAndCase) {
  AddWork("odd", 7, false, false);
  AddWork("main", 64, true, false);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.end_at_call = 3;  // the second case of "main"; "odd" makes two calls in its own guest
  candidate.end.kind = GuestFault::OUT_OF_BOUNDS;
  candidate.end.message = "wrote 4 bytes past the end";
  candidate.end.tensor = "y";
  candidate.end.byte_offset = 256;
  const RunnerReport report = Run(candidate);
  ASSERT_TRUE(report.has_candidate_fault());
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::OUT_OF_BOUNDS);
  EXPECT_EQ(report.candidate_fault().workload(), "main");
  EXPECT_EQ(report.candidate_fault().input_case(), "x3");
  EXPECT_EQ(report.candidate_fault().tensor(), "y");
  EXPECT_EQ(report.candidate_fault().byte_offset(), 256);
  EXPECT_FALSE(report.has_error());

  FakeGuestPlan unloadable = TripleCandidate();
  unloadable.load_end = End(GuestFault::LOAD_FAILED, "no symbol");
  EXPECT_EQ(Run(unloadable).candidate_fault().kind(), GuestFault::LOAD_FAILED);
}

TEST_F(RunnerTest, FaultsOfTheReferenceAreItsOwn) {
  AddWork("main", 64, true, false);
  FakeGuestPlan crashing = TripleReference();
  crashing.end_at_call = 1;
  crashing.end = End(GuestFault::SIGNAL, "signal 11");
  EXPECT_THAT(Run(TripleCandidate(), crashing).reference_fault().message(), HasSubstr("signal 11"));

  const FakeGuestPlan infinite = Computing([](int, const Tensors& t) {
    double* y = reinterpret_cast<double*>(t[1].data());
    for (int i = 0; i < 64; ++i) y[i] = i == 9 ? std::numeric_limits<double>::infinity() : 1.0;
  });
  EXPECT_THAT(Run(TripleCandidate(), infinite).reference_fault().message(),
              HasSubstr("not finite to y[9]"));

  const FakeGuestPlan idle = Computing([](int, const Tensors& t) {});
  EXPECT_THAT(Run(TripleCandidate(), idle).reference_fault().message(), HasSubstr("unwritten"));
  EXPECT_FALSE(Run(TripleCandidate(), idle).has_candidate_fault());
}

TEST_F(RunnerTest, FailuresOfTheInfrastructureAreErrors) {
  AddWork("main", 64, true, false);
  FakeGuestSource guests(TripleReference(), TripleCandidate(), &clock_);
  guests.failure = absl::ResourceExhaustedError("fork failed");
  const RunnerReport report = Run(&guests);
  EXPECT_EQ(report.error().code(), "RESOURCE_EXHAUSTED");
  EXPECT_THAT(report.error().message(), HasSubstr("fork failed"));

  request_.set_candidate_artifact(folder_->path() + "/missing");
  EXPECT_EQ(Run(TripleCandidate()).error().code(), "NOT_FOUND");
}

// Killed by somebody, or by a machine that ran out of memory: the candidate did nothing.
TEST_F(RunnerTest, AGuestThatWasLostIsTheInfrastructures) {
  AddWork("main", 64, true, true);
  for (const int call : {0, 2, 20}) {  // in the load, in verification, in a measurement
    FakeGuestPlan candidate = TripleCandidate();
    FakeGuestPlan reference = TripleReference();
    for (FakeGuestPlan* lost : {&candidate, &reference}) {
      SCOPED_TRACE(absl::StrCat(lost == &reference ? "reference" : "candidate", " at ", call));
      candidate = TripleCandidate();
      reference = TripleReference();
      // The reference is called once a case.
      lost->end_at_call = lost == &reference ? std::min(call, 4) : call;
      lost->end = End(0, "killed from outside");
      if (call == 0) lost->load_end = lost->end;
      const RunnerReport report = Run(candidate, reference);
      EXPECT_EQ(report.error().code(), "UNAVAILABLE");
      EXPECT_EQ(report.error().reason(), "GUEST_LOST");
      EXPECT_THAT(report.error().message(), HasSubstr("killed from outside"));
      EXPECT_FALSE(report.has_candidate_fault());
      EXPECT_FALSE(report.has_reference_fault());
    }
  }
}

// A candidate that turns wrong during the warm-up is wrong; what it wrote then is no answer that a
// later output could be stale with.
TEST_F(RunnerTest, OutputsOfTheWarmUpAreChecked) {
  AddWork("main", 64, true, true);
  const RunnerReport report = Run(Computing([](int call, const Tensors& t) {
    Multiply(t, call <= 13 ? 3.0f : 0.0f);  // twelve calls verify
  }));
  EXPECT_FALSE(report.workloads(0).verification().passed());
  EXPECT_EQ(report.workloads(0).verification().failed_case(), "the warm-up");
  EXPECT_EQ(report.workloads(0).stale_source(), "");
  EXPECT_FALSE(report.has_reference_fault());
}

// The problem says that y follows a permutation of x, but its reference does something else.
TEST_F(RunnerTest, AWrongTransformIsTheProblemsFault) {
  AddWork("main", 64, true, true);
  const auto compute = [](const Tensors& t, auto* y) {
    const float* x = Floats(t[0]);
    for (int i = 0; i < 64; ++i) y[i] = x[i] * 3.0f + static_cast<float>(i) * x[0];
  };
  FakeGuestPlan reference;
  reference.compute = [compute](int, const Tensors& t, const std::vector<int64_t>&) {
    compute(t, reinterpret_cast<double*>(t[1].data()));
  };
  const RunnerReport report =
      Run(Computing([compute](int, const Tensors& t) { compute(t, Floats(t[1])); }), reference);
  ASSERT_TRUE(report.has_reference_fault()) << report.DebugString();
  EXPECT_THAT(report.reference_fault().message(), HasSubstr("transform is not exact"));
  EXPECT_FALSE(report.has_candidate_fault());
}

TEST_F(RunnerTest, ShowsLifeBetweenSlowCalls) {
  AddWork("main", 64, true, true);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [](int) {
    CallTiming timing;
    timing.duration_ns = 700e6;
    return timing;
  };
  const absl::Duration start = clock_.Monotonic();
  const RunnerReport report = Run(candidate);
  EXPECT_FALSE(report.has_error()) << report.error().message();
  ASSERT_GE(progress_.size(), 4u);
  EXPECT_EQ(progress_.front().phase, internal::v1::RunnerProgress::VERIFY);
  EXPECT_EQ(progress_.back().phase, internal::v1::RunnerProgress::MEASURE);
  absl::Duration last = start;
  for (const Progress& progress : progress_) {
    EXPECT_LE(progress.at - last, absl::Seconds(2));
    last = progress.at;
  }
  EXPECT_LE(clock_.Monotonic() - last, absl::Seconds(2));
}

TEST(FramingTest, RoundTripAndLimits) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  UniqueFd read(fds[0]);
  UniqueFd write(fds[1]);
  ASSERT_OK(WriteAll(write.get(), Frame("hello") + Frame("") + Frame("too long") + "\x05"));
  EXPECT_EQ(*ReadFrame(read.get(), 5), "hello");
  EXPECT_EQ(*ReadFrame(read.get(), 5), "");
  EXPECT_THAT(ReadFrame(read.get(), 5), StatusIs(absl::StatusCode::kResourceExhausted));
  char rest[8];
  ASSERT_EQ(::read(read.get(), rest, 8), 8);
  write.Reset();
  EXPECT_THAT(ReadFrame(read.get(), 5), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadFrame(read.get(), 5), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(GuestPoolTest, StartsAheadAndHandsOutEachGuestOnce) {
  FakeClock clock;
  std::atomic<int> started{0};
  GuestPoolOptions options;
  options.start = [&](int index) -> absl::StatusOr<std::unique_ptr<GuestSession>> {
    ++started;
    if (index == 3) return absl::UnavailableError("no more");
    return std::make_unique<FakeGuest>(TripleCandidate(), &clock);
  };
  GuestPool pool(std::move(options));
  pool.Prepare(2);
  pool.WaitIdle();
  EXPECT_EQ(started.load(), 2);
  EXPECT_OK(pool.Take());
  EXPECT_OK(pool.Take());
  pool.WaitIdle();
  EXPECT_EQ(started.load(), 2);
  EXPECT_OK(pool.Take());  // started on demand
  EXPECT_THAT(pool.Take(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace assay
