// Verification and measurement through the runner's one entry, with fake guests.
#include "worker/runner/runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/measure/measurer.h"
#include "worker/runner/framing.h"
#include "worker/runner/guest_pool.h"
#include "worker/testing/fake_guest.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using internal::v1::RunnerWorkloadReport;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::vector<std::span<std::byte>>;

class RunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("runner-test"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
    const std::string artifact = folder_->path() + "/artifact";
    ASSERT_OK(WriteFileAtomically(artifact, "not loaded by fakes"));
    request_.set_candidate_artifact(artifact);
    request_.set_reference_artifact(artifact);
    request_.set_nonce(0x1234567890abcdef);
    request_.set_call_timeout_ms(1000);
    request_.set_level(v1::QUICK);
    MakeTripleProblem(true, request_.mutable_problem());
  }

  void AddWork(const std::string& name, int64_t n, bool battery, bool measure) {
    RunnerRequest::Work& work = *request_.add_work();
    work.mutable_workload()->set_name(name);
    (*work.mutable_workload()->mutable_axes())["n"] = n;
    work.set_battery(battery);
    work.set_measure(measure);
  }

  RunnerReport Run(FakeGuestPlan candidate, FakeGuestPlan reference = TripleReference()) {
    FakeGuestSource guests(std::move(reference), std::move(candidate), &clock_);
    return Run(&guests);
  }

  RunnerReport Run(FakeGuestSource* guests) {
    RunnerReport report;
    progress_.clear();
    const auto note = [this](const internal::v1::RunnerProgress& progress) {
      progress_.push_back({progress.phase(), clock_.Monotonic()});
    };
    ExecuteRunnerRequest(request_, guests, &clock_, note, &report);
    return report;
  }

  struct Progress {
    int phase;
    absl::Duration at;
  };

  FakeClock clock_;
  std::unique_ptr<TemporaryDirectory> folder_;
  std::vector<Progress> progress_;
  RunnerRequest request_;
};

FakeGuestPlan Computing(std::function<void(int call, const Tensors& tensors)> compute) {
  FakeGuestPlan plan;
  plan.compute = [compute](int call, const Tensors& tensors, const std::vector<int64_t>& axes) {
    compute(call, tensors);
  };
  return plan;
}

GuestEnd End(int kind, const std::string& message) {
  GuestEnd end;
  end.kind = kind;
  end.message = message;
  return end;
}

float* Floats(std::span<std::byte> bytes) { return reinterpret_cast<float*>(bytes.data()); }

TEST_F(RunnerTest, ARightCandidatePassesTheBattery) {
  AddWork("main", 64, true, false);
  AddWork("odd", 7, false, false);
  const RunnerReport report = Run(TripleCandidate());
  EXPECT_FALSE(report.has_error()) << report.DebugString();
  EXPECT_FALSE(report.has_candidate_fault()) << report.DebugString();
  ASSERT_EQ(report.workloads_size(), 2);
  const v1::Verification& main = report.workloads(0).verification();
  EXPECT_TRUE(main.passed()) << report.DebugString();
  EXPECT_THAT(main.cases(), ElementsAre("x1", "x3", "x0.01", "x-1"));
  EXPECT_EQ(main.checked_call_count(), 5);  // x1 twice
  EXPECT_EQ(main.input_fingerprint().size(), 64u);
  ASSERT_EQ(main.outputs_size(), 1);
  EXPECT_EQ(main.outputs(0).element_count(), 64);
  EXPECT_LT(main.outputs(0).element_error_max(), 1e-6);
  EXPECT_THAT(report.workloads(1).verification().cases(), ElementsAre("x1"));
  EXPECT_THAT(report.walls(), ElementsAre("fake-wall"));
  EXPECT_THAT(report.output_log(), HasSubstr("fake output"));
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
    Multiply(t, call <= 6 ? 3.0f : 0.0f);  // five calls verify
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

TEST_F(RunnerTest, MeasuresAModelledTimer) {
  AddWork("main", 64, true, true);
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [&random](int) {
    CallTiming timing;
    timing.duration_ns = 20'000 * (1 + 0.02 * (random.Uniform() - 0.5));
    timing.answer_ns = 150;
    return timing;
  };
  const RunnerReport report = Run(candidate);
  ASSERT_TRUE(report.workloads(0).has_samples()) << report.DebugString();
  const v1::RunnerSamples& samples = report.workloads(0).samples();
  EXPECT_EQ(samples.stop_reason(), v1::CONVERGED);
  EXPECT_EQ(samples.warm_ns_size(), 30);
  EXPECT_EQ(samples.cold_ns_size(), 10);
  EXPECT_EQ(samples.discarded_count(), 0);
  EXPECT_DOUBLE_EQ(samples.handshake_ns(), 160);
  EXPECT_GE(samples.warmup_calls(), 15);
  for (const double ns : samples.warm_ns()) EXPECT_NEAR(ns, 20'000, 201);
  // Every timed call was compared as well.
  EXPECT_EQ(report.workloads(0).verification().checked_call_count(),
            5 + 1 + 40);  // verification, the warm-up, samples
  EXPECT_GT(report.measure_ns(), 0);
}

TEST_F(RunnerTest, RankedWarmsUpLonger) {
  request_.set_level(v1::RANKED);
  AddWork("main", 64, false, true);
  const RunnerReport report = Run(TripleCandidate());
  const v1::RunnerSamples& samples = report.workloads(0).samples();
  EXPECT_GE(samples.warmup_calls(), 50'000);  // half a second of 10 us calls
  EXPECT_EQ(samples.warm_ns_size(), 90);
}

TEST_F(RunnerTest, ADriftingStartIsWarmedAway) {
  AddWork("main", 64, false, true);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [](int call) {
    CallTiming timing;
    timing.duration_ns = 10'000 * (1 + 5 * std::exp(-call / 30.0));
    timing.answer_ns = 150;
    return timing;
  };
  const RunnerReport report = Run(candidate);
  EXPECT_GT(report.workloads(0).samples().warmup_calls(), 60);
  EXPECT_LT(report.workloads(0).samples().warm_ns(0), 11'500);
}

TEST_F(RunnerTest, DisturbedSamplesAreDroppedButNotTooMany) {
  AddWork("main", 64, false, true);
  FakeGuestPlan candidate = TripleCandidate();
  const auto disturbed_every = [](int period) {
    return [period](int call) {
      CallTiming timing;
      timing.duration_ns = 10'000;
      timing.answer_ns = 150;
      if (call % period == 0) {
        timing.context_switches = 1;
        timing.duration_ns = 90'000;
      }
      return timing;
    };
  };
  candidate.timing = disturbed_every(10);
  const RunnerReport rare = Run(candidate);
  EXPECT_GE(rare.workloads(0).samples().discarded_count(), 2);
  EXPECT_EQ(rare.workloads(0).samples().context_switches(), 0);

  candidate.timing = disturbed_every(2);
  const RunnerReport often = Run(candidate);
  const v1::RunnerSamples& samples = often.workloads(0).samples();
  EXPECT_GT(samples.context_switches(), 0);
  EXPECT_LE(samples.discarded_count(),
            0.2 * (samples.discarded_count() + samples.warm_ns_size() + samples.cold_ns_size()));
}

// Right in verification, then the same answer for every timed call.
TEST_F(RunnerTest, AStaleAnswerInATimedCallIsRecognised) {
  AddWork("main", 64, true, true);
  for (const bool transforms : {true, false}) {
    SCOPED_TRACE(transforms);
    request_.mutable_problem()->Clear();
    MakeTripleProblem(transforms, request_.mutable_problem());
    std::vector<std::byte> kept;
    const RunnerReport report = Run(Computing([&kept](int call, const Tensors& t) {
      if (call <= 6) {
        Multiply(t, 3.0f);
        kept.assign(t[1].begin(), t[1].end());
      }
      std::memcpy(t[1].data(), kept.data(), kept.size());
    }));
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_FALSE(work.verification().passed());
    EXPECT_EQ(work.failed_timed_call(), 1);
    EXPECT_EQ(work.stale_source(), "the warm-up");
    EXPECT_EQ(work.verification().failed_case(), "timed call 1");
  }
}

// One call behind: the output of a call is the answer to the call before it.
TEST_F(RunnerTest, AnAnswerOneCallLateIsRecognised) {
  AddWork("main", 64, true, true);
  std::vector<std::byte> last;
  int honest = 40;  // warm-up and some timed calls are answered honestly
  const RunnerReport report = Run(Computing([&](int call, const Tensors& t) {
    if (call > honest) std::memcpy(t[1].data(), last.data(), last.size());
    std::vector<std::byte> shown(t[1].begin(), t[1].end());
    Multiply(t, 3.0f);
    last.assign(t[1].begin(), t[1].end());
    if (call > honest) std::memcpy(t[1].data(), shown.data(), shown.size());
  }));
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_FALSE(work.verification().passed());
  EXPECT_GT(work.failed_timed_call(), 1);
  EXPECT_EQ(work.stale_source(), "timed call " + std::to_string(work.failed_timed_call() - 1));
}

// The honest neighbour: wrong in a timed call, but not with an earlier answer.
TEST_F(RunnerTest, AMerelyWrongTimedCallIsNotStale) {
  AddWork("main", 64, true, true);
  const RunnerReport report =
      Run(Computing([](int call, const Tensors& t) { Multiply(t, call <= 30 ? 3.0f : 2.5f); }));
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_FALSE(work.verification().passed());
  EXPECT_GT(work.failed_timed_call(), 0);
  EXPECT_EQ(work.reason(), "MISMATCH");
  EXPECT_EQ(work.stale_source(), "");
}

TEST_F(RunnerTest, LateWorkIsAFaultOfTheCandidate) {
  AddWork("main", 64, true, true);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [](int) {
    CallTiming timing;
    timing.duration_ns = 200;
    timing.answer_ns = 9'950;
    return timing;
  };
  const RunnerReport report = Run(candidate);
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::LATE_WORK);
  EXPECT_DOUBLE_EQ(report.workloads(0).answer_ns(), 9'950);
  EXPECT_DOUBLE_EQ(report.workloads(0).empty_answer_ns(), 150);
}

TEST(LateWorkTest, Table) {
  constexpr AfterCall kEmpty{150, 20'000};
  EXPECT_FALSE(IsLateWork({150, 20'000}, kEmpty, 10'000));
  EXPECT_FALSE(IsLateWork({900, 20'000}, kEmpty, 200));             // below a microsecond
  EXPECT_TRUE(IsLateWork({1'300, 20'000}, kEmpty, 200));            // most of the time is hidden
  EXPECT_FALSE(IsLateWork({3'000, 20'000}, kEmpty, 10'000'000));    // stores draining after 10 ms
  EXPECT_TRUE(IsLateWork({1'000'000, 20'000}, kEmpty, 9'000'000));  // a tenth is hidden
  // The answer is forged, the sleep is not.
  EXPECT_TRUE(IsLateWork({150, 1'020'000}, kEmpty, 9'000'000));
  EXPECT_TRUE(IsLateWork({150, 26'000}, kEmpty, 200));
  EXPECT_FALSE(IsLateWork({150, 24'000}, kEmpty, 200));  // within what the looks give
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
