// Measurement through the runner's one entry, with fake guests.
#include "worker/measure/measurer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/testing/fake_guest.h"
#include "worker/testing/runner_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST_F(RunnerTest, MeasuresAModelledTimer) {
  AddWork("main", 64, true, true);
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [&random](int) {
    CallTiming timing;
    timing.duration_ns = 20'000 * (1 + 0.02 * (random.Uniform() - 0.5));
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
  EXPECT_GE(report.workloads(0).verification().checked_call_count(),
            5 + 1 + 3 + 40);  // verification, the warm-up, altered calls, samples
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

TEST_F(RunnerTest, TimesThatCannotBeAreNoTimes) {
  AddWork("main", 64, false, true);
  for (const double ns : {std::nan(""), 0.0, -5.0, 60.0}) {
    SCOPED_TRACE(ns);
    FakeGuestPlan candidate = TripleCandidate();
    candidate.timing = [ns](int call) {
      CallTiming timing;
      timing.duration_ns = call == 40 ? ns : 10'000;
      return timing;
    };
    const RunnerReport report = Run(candidate);
    EXPECT_EQ(report.error().reason(), "TIME_IMPOSSIBLE") << report.DebugString();
    EXPECT_FALSE(report.has_candidate_fault());
  }
}

// A timer that gives less to the clock than to the samples.
TEST_F(RunnerTest, CallsTakeNoLongerThanPassed) {
  AddWork("main", 64, false, true);
  FakeGuestPlan candidate = TripleCandidate();
  const RunnerReport honest = Run(candidate);
  const v1::RunnerSamples& samples = honest.workloads(0).samples();
  double sum_ns = 0;
  for (const double ns : samples.warm_ns()) sum_ns += ns;
  for (const double ns : samples.cold_ns()) sum_ns += ns;
  EXPECT_GE(samples.elapsed_ns(), sum_ns - 1);
  candidate.clock_ratio = 0.1;
  EXPECT_EQ(Run(candidate).error().reason(), "TIME_IMPOSSIBLE");
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
      if (call <= 13) {
        Multiply(t, 3.0f);
        kept.assign(t[1].begin(), t[1].end());
      }
      std::memcpy(t[1].data(), kept.data(), kept.size());
    }));
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_FALSE(work.verification().passed());
    EXPECT_EQ(work.stale_source(), "the warm-up");
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
      Run(Computing([](int call, const Tensors& t) { Multiply(t, call <= 37 ? 3.0f : 2.5f); }));
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_FALSE(work.verification().passed());
  EXPECT_GT(work.failed_timed_call(), 0);
  EXPECT_EQ(work.reason(), "MISMATCH");
  EXPECT_EQ(work.stale_source(), "");
}

TEST_F(RunnerTest, HiddenWorkIsAFaultOfTheCandidate) {
  AddWork("main", 64, true, true);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [](int) {
    CallTiming timing;
    timing.duration_ns = 200;
    timing.outside_ns = 11'950;
    return timing;
  };
  const RunnerReport report = Run(candidate);
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::HIDDEN_WORK);
  EXPECT_THAT(report.candidate_fault().message(), HasSubstr("9950 ns"));
  EXPECT_DOUBLE_EQ(report.workloads(0).hidden_ns(), 9'950);
  EXPECT_DOUBLE_EQ(report.workloads(0).empty_outside_ns(), 2'000);
}

// Fewer than half of the calls hide work, and more than half of the others look disturbed, so that
// the hiding ones would decide a median.
TEST_F(RunnerTest, CallsThatHideWorkDoNotCount) {
  AddWork("main", 64, true, true);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [](int call) {
    CallTiming timing;
    const bool hides = call % 5 < 2;
    timing.duration_ns = hides ? 2'000 : 10'000;
    timing.outside_ns = hides ? 11'000 : 2'000;
    timing.context_switches = call % 5 < 4 ? 0 : 1;
    return timing;
  };
  const RunnerReport report = Run(candidate);
  EXPECT_FALSE(report.has_candidate_fault());
  const v1::RunnerSamples& samples = report.workloads(0).samples();
  ASSERT_GE(samples.warm_ns_size(), 30);
  EXPECT_GT(samples.discarded_count(), 20);
  for (const double ns : samples.warm_ns()) EXPECT_DOUBLE_EQ(ns, 10'000);
}

// What a busy machine does: a streak of calls during which the guest's core has lost its caches to
// others.
TEST_F(RunnerTest, AStreakOfSlowWakeUpsAccusesNobody) {
  AddWork("main", 64, true, true);
  for (int phase = 0; phase < 32; ++phase) {
    FakeGuestPlan candidate = TripleCandidate();
    candidate.timing = [&](int call) {
      CallTiming timing;
      timing.duration_ns = 10'000;
      timing.outside_ns = (call + phase) % 32 < 8 ? 14'000 : 2'000;
      return timing;
    };
    const RunnerReport report = Run(candidate);
    EXPECT_FALSE(report.has_candidate_fault())
        << "phase " << phase << ": " << report.candidate_fault().message();
    EXPECT_GE(report.workloads(0).samples().warm_ns_size(), 30);
  }
}

// What a busier machine does: every wake-up takes longer, by as much as empty calls differ among
// themselves.
TEST_F(RunnerTest, WhatNoiseMayExplainAccusesNobody) {
  AddWork("main", 64, true, true);
  const struct {
    double noise_ns;
    bool hides;
  } rows[] = {{0, true}, {3'000, true}, {9'000, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.noise_ns);
    FakeGuestPlan reference = TripleReference();
    reference.empty_outside_ns = [&](int call, GuestCache) {
      return call % 4 == 0 ? 2'000 + row.noise_ns : 2'000;
    };
    FakeGuestPlan candidate = TripleCandidate();
    candidate.timing = [](int) {
      CallTiming timing;
      timing.duration_ns = 10'000;
      timing.outside_ns = 8'000;
      return timing;
    };
    const RunnerReport report = Run(candidate, reference);
    EXPECT_EQ(report.candidate_fault().kind() == GuestFault::HIDDEN_WORK, row.hides)
        << report.DebugString();
    if (row.hides) continue;
    EXPECT_FALSE(report.has_candidate_fault()) << report.DebugString();
    EXPECT_GE(report.workloads(0).samples().warm_ns_size(), 30);
    EXPECT_EQ(report.workloads(0).empty_outside_ns(), 0) << "it is known that nothing is known";
  }
}

// Less than a single call tells, in all of them.
TEST_F(RunnerTest, ALittleHiddenWorkInEveryCallIsSeenByItsMedian) {
  AddWork("main", 64, true, true);
  const struct {
    double hidden_ns;
    double noise_ns;  // of every fourth empty call
    bool hides;
  } rows[] = {{700, 0, false}, {1'500, 0, true}, {2'900, 0, true}, {2'900, 6'000, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.hidden_ns);
    FakeGuestPlan reference = TripleReference();
    reference.empty_outside_ns = [&](int call, GuestCache) {
      return call % 4 == 0 ? 2'000 + row.noise_ns : 2'000;
    };
    FakeGuestPlan candidate = TripleCandidate();
    candidate.timing = [&](int) {
      CallTiming timing;
      timing.duration_ns = 4'000;
      timing.outside_ns = 2'000 + row.hidden_ns;
      return timing;
    };
    const RunnerReport report = Run(candidate, reference);
    EXPECT_EQ(report.candidate_fault().kind() == GuestFault::HIDDEN_WORK, row.hides)
        << report.DebugString();
  }
}

// A machine that takes its time over the first empty call has not broken its timer.
TEST_F(RunnerTest, ALongEmptyCallMakesNoTimeImpossible) {
  AddWork("main", 64, true, true);
  FakeGuestPlan reference = TripleReference();
  reference.empty_ns = [](int call) { return call == 1 ? 32e6 : 150; };
  const RunnerReport report = Run(TripleCandidate(), reference);
  EXPECT_FALSE(report.has_error()) << report.DebugString();
  EXPECT_GE(report.workloads(0).samples().warm_ns_size(), 30);
}

// Preparing the operands costs the guest the caches that its wake-up needs, so the empty call is
// prepared alike.
TEST_F(RunnerTest, WhatThePreparationOfOperandsCostsIsInTheEmptyCallToo) {
  AddWork("main", 64, true, true);
  FakeGuestPlan reference = TripleReference();
  reference.empty_outside_ns = [](int, GuestCache cache) {
    return cache == GuestCache::kWarm ? 14'000.0 : 2'000.0;
  };
  FakeGuestPlan candidate = TripleCandidate();
  candidate.timing = [&](int) {
    CallTiming timing;
    timing.duration_ns = 10'000;
    timing.outside_ns = 14'000;
    return timing;
  };
  const RunnerReport report = Run(candidate, reference);
  // Cold calls flush instead, and this candidate takes no less then.
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::HIDDEN_WORK);
  EXPECT_GE(report.workloads(0).samples().warm_ns_size(), 30);
  EXPECT_EQ(report.workloads(0).samples().cold_ns_size(), 0);
}

TEST_F(RunnerTest, AnAnswerToInputsBeforeTheyChangedIsHiddenWork) {
  for (const bool transforms : {true, false}) {
    SCOPED_TRACE(transforms);
    request_.mutable_problem()->Clear();
    MakeTripleProblem(transforms, request_.mutable_problem());
    request_.clear_work();
    AddWork("main", 64, true, true);
    FakeGuestPlan candidate = TripleCandidate();
    candidate.computes_early = true;
    const RunnerReport report = Run(candidate);
    EXPECT_EQ(report.candidate_fault().kind(), GuestFault::HIDDEN_WORK) << report.DebugString();
    EXPECT_THAT(report.candidate_fault().message(), HasSubstr("inputs that changed"));
  }
}

TEST_F(RunnerTest, AWrongAnswerToChangedInputsIsMerelyWrong) {
  // From some call after verification and warm-up on. Now and then it is one with changed inputs.
  int altered = 0;
  for (uint64_t nonce = 1; nonce <= 60; ++nonce) {
    SCOPED_TRACE(nonce);
    request_.set_nonce(nonce);
    request_.clear_work();
    AddWork("main", 64, true, true);
    const RunnerReport report = Run(Computing(
        [](int call, const Tensors& tensors) { Multiply(tensors, call > 30 ? 2.5f : 3.0f); }));
    EXPECT_FALSE(report.has_candidate_fault()) << report.DebugString();
    EXPECT_EQ(report.workloads(0).reason(), "MISMATCH");
    altered += report.workloads(0).verification().failed_case() == "a call with changed inputs";
  }
  EXPECT_GT(altered, 0);
}

TEST_F(RunnerTest, NobodyIsAccusedWhereTheRunnerHadToWait) {
  AddWork("main", 64, true, true);
  FakeGuestPlan candidate = TripleCandidate();
  candidate.account_is_void = true;
  const RunnerReport report = Run(candidate);
  EXPECT_FALSE(report.has_candidate_fault());
  EXPECT_EQ(report.workloads(0).samples().warm_ns_size(), 30);
  EXPECT_EQ(report.workloads(0).empty_outside_ns(), 0) << "but it is known that nothing is known";
}

// A candidate that keeps its last result recognises content derived from the same base by the
// mantissa of its largest element, which permutations and powers of two leave alone.
class Rememberer {
 public:
  FakeGuestPlan Plan() {
    FakeGuestPlan plan = Computing([this](int call, const Tensors& tensors) {
      float largest = 0;
      const float* x = Floats(tensors[0]);
      for (size_t i = 0; i < tensors[0].size() / sizeof(float); ++i) {
        largest = std::max(largest, std::abs(x[i]));
      }
      int exponent = 0;
      const float mantissa = std::frexp(largest, &exponent);
      known_ = mantissa == mantissa_;
      mantissa_ = mantissa;
      Multiply(tensors, 3.0f);
    });
    plan.timing = [this](int) {
      CallTiming timing;
      timing.duration_ns = known_ ? 2'000 : 10'000;
      return timing;
    };
    return plan;
  }

 private:
  float mantissa_ = 0;
  bool known_ = false;
};

TEST_F(RunnerTest, OnlyNewContentCountsWhereDerivedContentIsFaster) {
  for (const v1::Level level : {v1::QUICK, v1::RANKED}) {
    SCOPED_TRACE(level);
    request_.set_level(level);
    request_.clear_work();
    AddWork("main", 64, true, true);
    Rememberer rememberer;
    const RunnerReport report = Run(rememberer.Plan());
    EXPECT_FALSE(report.has_candidate_fault());
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_GE(work.samples().warm_ns_size(), level == v1::QUICK ? 30 : 90);
    for (const double ns : work.samples().warm_ns()) EXPECT_DOUBLE_EQ(ns, 10'000);
    EXPECT_DOUBLE_EQ(work.new_base_ns(), 10'000);
    EXPECT_DOUBLE_EQ(work.derived_ns(), 2'000);
  }
}

// One that knows how to tell new content before the clock starts computes it there.
TEST_F(RunnerTest, HiddenWorkOnNewContentDoesNotHideThatDerivedContentIsFaster) {
  AddWork("main", 64, true, true);
  Rememberer rememberer;
  FakeGuestPlan candidate = rememberer.Plan();
  const auto timing = candidate.timing;
  candidate.timing = [timing](int call) {
    CallTiming got = timing(call);
    got.outside_ns = got.duration_ns > 5'000 ? 10'000 : 2'000;
    got.duration_ns = 2'000;
    return got;
  };
  const RunnerReport report = Run(candidate);
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::HIDDEN_WORK) << report.DebugString();
}

// A reference that is too slow for many bases.
TEST_F(RunnerTest, OnlyNewContentCountsWithASlowReferenceToo) {
  AddWork("main", 64, true, true);
  Rememberer rememberer;
  FakeGuestPlan reference = TripleReference();
  reference.timing = [](int) {
    CallTiming timing;
    timing.duration_ns = 50e6;
    return timing;
  };
  const RunnerReport report = Run(rememberer.Plan(), reference);
  ASSERT_GE(report.workloads(0).samples().warm_ns_size(), 30);
  for (const double ns : report.workloads(0).samples().warm_ns()) EXPECT_DOUBLE_EQ(ns, 10'000);
}

TEST(HiddenWorkTest, Table) {
  EXPECT_FALSE(IsHiddenWork(0, 10'000));
  EXPECT_FALSE(IsHiddenWork(-50'000, 10'000));      // it was without a core
  EXPECT_FALSE(IsHiddenWork(2'900, 200));           // within what interrupts do
  EXPECT_TRUE(IsHiddenWork(3'100, 200));            // most of the time is hidden
  EXPECT_FALSE(IsHiddenWork(5'000, 10'000'000));    // stores draining after 10 ms
  EXPECT_TRUE(IsHiddenWork(1'000'000, 9'000'000));  // a tenth is hidden
}

TEST(DerivedFasterTest, Table) {
  EXPECT_FALSE(IsDerivedFaster({10'000, 10'100, 9'900}, {10'000, 9'800, 10'300}));
  EXPECT_TRUE(IsDerivedFaster({10'000, 10'100, 9'900}, {5'000, 9'800, 5'300}));
  EXPECT_FALSE(IsDerivedFaster({10'000, 10'100, 5'400}, {5'000, 9'800, 5'300}));  // one as fast
  EXPECT_FALSE(IsDerivedFaster({10'000, 10'100}, {5'000, 5'000, 5'300}));         // too few
  EXPECT_FALSE(IsDerivedFaster({1'100, 1'100, 1'100}, {1'000, 1'000, 1'000}));    // 100 ns
}

}  // namespace
}  // namespace assay
