#include "store/testing/conformance.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/records.h"
#include "store/testing/builders.h"
#include "store/testing/proto_matcher.h"

namespace assay {
namespace {

using ::assay::testing::Complete;
using ::assay::testing::CreateAdmittedProblem;
using ::assay::testing::CreateCandidate;
using ::assay::testing::CreateEvaluations;
using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::EqualsProto;
using ::assay::testing::Lease;
using ::assay::testing::MakeCandidate;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeGrant;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;
using ::assay::testing::TestTime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

NewEvaluation WithRequest(NewEvaluation evaluation, std::string id, std::string digest) {
  evaluation.request_id = std::move(id);
  evaluation.request_digest = std::move(digest);
  return evaluation;
}

std::vector<NewEvaluation> Batch(std::vector<NewEvaluation> evaluations) { return evaluations; }

}  // namespace

void StoreConformanceTest::SetUp() {
  fixture_ = GetParam().make();
  ASSERT_NE(fixture_, nullptr);
  ASSERT_OK(CreateAdmittedProblem(store(), MakeProblem("gelu")));
}

// --- Problems.

TEST_P(StoreConformanceTest, ProblemsHaveVersions) {
  const v1::Problem first = MakeProblem("scan", 2, "first");
  EXPECT_THAT(*CreateProblem(store(), first), EqualsProto(first));
  // The same content again, even with another time.
  v1::Problem again = first;
  *again.mutable_create_time() = ToTimestamp(TestTime(99));
  EXPECT_THAT(*CreateProblem(store(), again), EqualsProto(first));
  // Other content needs a higher version.
  for (const int version : {1, 2}) {
    EXPECT_THAT(CreateProblem(store(), MakeProblem("scan", version, "other")),
                ::testing::AllOf(StatusIs(absl::StatusCode::kAlreadyExists),
                                 HasReason("PROBLEM_VERSION_EXISTS")));
  }
  const v1::Problem second = MakeProblem("scan", 5, "second");
  EXPECT_THAT(*CreateProblem(store(), second), EqualsProto(second));

  EXPECT_THAT(*store().GetProblem("problems/scan", 0), EqualsProto(second));
  EXPECT_THAT(*store().GetProblem("problems/scan", 2), EqualsProto(first));
  EXPECT_THAT(*CreateProblem(store(), first), EqualsProto(first));
  EXPECT_THAT(store().GetProblem("problems/scan", 3), HasReason("PROBLEM_NOT_FOUND"));
  EXPECT_THAT(
      store().GetProblem("problems/none", 0),
      ::testing::AllOf(StatusIs(absl::StatusCode::kNotFound), HasReason("PROBLEM_NOT_FOUND")));
}

TEST_P(StoreConformanceTest, ProblemsAreListedByNameInTheNewestVersionWithoutFiles) {
  for (const char* name : {"topk", "scan", "softmax"}) {
    ASSERT_OK(CreateProblem(store(), MakeProblem(name)));
  }
  ASSERT_OK(CreateProblem(store(), MakeProblem("scan", 3)));
  std::vector<std::string> seen;
  Page page;
  page.size = 2;
  int pages = 0;
  do {
    ASSERT_OK_AND_ASSIGN(Listed<v1::Problem> listed, store().ListProblems(page));
    for (const v1::Problem& problem : listed.items) {
      EXPECT_EQ(problem.files_size(), 0);
      seen.push_back(absl::StrCat(problem.name(), " ", problem.version()));
    }
    page.after = listed.next;
    ++pages;
  } while (!page.after.empty());
  EXPECT_THAT(seen, ElementsAre("problems/gelu 1", "problems/scan 3", "problems/softmax 1",
                                "problems/topk 1"));
  EXPECT_EQ(pages, 2);
}

// --- Candidates.

TEST_P(StoreConformanceTest, CandidatesAreImmutable) {
  const v1::Candidate first = MakeCandidate("a");
  EXPECT_THAT(*CreateCandidate(store(), first), EqualsProto(first));
  v1::Candidate again = first;
  again.mutable_spec()->set_label("another label");
  EXPECT_THAT(*CreateCandidate(store(), again), EqualsProto(first));
  EXPECT_THAT(*store().GetCandidate(first.name()), EqualsProto(first));
  EXPECT_THAT(
      store().GetCandidate("candidates/none"),
      ::testing::AllOf(StatusIs(absl::StatusCode::kNotFound), HasReason("CANDIDATE_NOT_FOUND")));
}

TEST_P(StoreConformanceTest, CandidatesAreListedNewestFirstWithoutFiles) {
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_OK(CreateCandidate(store(), MakeCandidate(id, "gelu")));
  }
  ASSERT_OK(CreateCandidate(store(), MakeCandidate("d", "scan")));
  const auto labels = [&](std::string_view problem, int size) {
    std::vector<std::string> seen;
    Page page;
    page.size = size;
    do {
      auto listed = store().ListCandidates(problem, page);
      EXPECT_OK(listed);
      for (const v1::Candidate& candidate : listed->items) {
        EXPECT_EQ(candidate.files_size(), 0);
        seen.push_back(candidate.spec().label());
      }
      page.after = listed->next;
    } while (!page.after.empty());
    return seen;
  };
  for (const int size : {1, 2, 3, 50}) {
    EXPECT_THAT(labels("", size), ElementsAre("d", "c", "b", "a"));
    EXPECT_THAT(labels("problems/gelu", size), ElementsAre("c", "b", "a"));
  }
  EXPECT_THAT(labels("problems/none", 2), IsEmpty());
}

// --- Creation.

TEST_P(StoreConformanceTest, ACreatedEvaluationIsStoredWithItsCandidate) {
  NewEvaluation input = MakeEvaluation("e1", "c1");
  input.evaluation.set_stage("BUILD");
  input.evaluation.set_waiting_reason("nobody");
  input.evaluation.set_revision(77);
  (*input.evaluation.mutable_configuration())["tile"] = 32;
  ASSERT_OK_AND_ASSIGN(const CreatedEvaluation created, CreateOne(store(), input));
  EXPECT_FALSE(created.existed);
  EXPECT_EQ(created.evaluation.revision(), 1);
  EXPECT_EQ(created.evaluation.stage(), "");
  EXPECT_EQ(created.evaluation.waiting_reason(), "");
  EXPECT_EQ(created.evaluation.configuration().at("tile"), 32);
  EXPECT_THAT(created.evaluation.update_time(), EqualsProto(input.evaluation.create_time()));
  EXPECT_THAT(created.evaluation.timeline().create_time(),
              EqualsProto(input.evaluation.create_time()));
  EXPECT_THAT(*store().GetEvaluation("evaluations/e1", true), EqualsProto(created.evaluation));
  EXPECT_THAT(*store().GetCandidate(input.candidate->name()), EqualsProto(*input.candidate));
  EXPECT_THAT(
      store().GetEvaluation("evaluations/none", false),
      ::testing::AllOf(StatusIs(absl::StatusCode::kNotFound), HasReason("EVALUATION_NOT_FOUND")));
}

TEST_P(StoreConformanceTest, ReferencesMustExist) {
  NewEvaluation no_problem = MakeEvaluation("e1", "c1", "none");
  EXPECT_THAT(
      CreateOne(store(), no_problem),
      ::testing::AllOf(StatusIs(absl::StatusCode::kNotFound), HasReason("PROBLEM_NOT_FOUND")));
  NewEvaluation no_candidate = MakeEvaluation("e1");
  no_candidate.candidate.reset();
  EXPECT_THAT(
      CreateOne(store(), no_candidate),
      ::testing::AllOf(StatusIs(absl::StatusCode::kNotFound), HasReason("CANDIDATE_NOT_FOUND")));
  NewEvaluation no_baseline = MakeEvaluation("e1", "c9");
  no_baseline.evaluation.set_baseline_candidate("candidates/none");
  EXPECT_THAT(CreateOne(store(), no_baseline), HasReason("CANDIDATE_NOT_FOUND"));
  // A refused creation leaves nothing.
  EXPECT_THAT(store().GetCandidate(no_baseline.candidate->name()),
              HasReason("CANDIDATE_NOT_FOUND"));

  // Candidates that exist, and that another evaluation of the call brings.
  ASSERT_OK(CreateCandidate(store(), MakeCandidate("c1")));
  NewEvaluation named = MakeEvaluation("e1", "c1");
  named.candidate.reset();
  NewEvaluation brings = MakeEvaluation("e2", "c2");
  brings.baseline_candidate = MakeCandidate("c3");
  brings.evaluation.set_baseline_candidate(brings.baseline_candidate->name());
  NewEvaluation borrows = MakeEvaluation("e3", "c2");
  borrows.candidate.reset();
  ASSERT_OK(CreateEvaluations(store(), Batch({named, brings, borrows})));
  EXPECT_EQ(store().GetEvaluation("evaluations/e3", false)->candidate(),
            MakeCandidate("c2").name());
  EXPECT_OK(store().GetCandidate(MakeCandidate("c3").name()));
}

TEST_P(StoreConformanceTest, ARequestIdCreatesOnce) {
  ASSERT_OK(CreateOne(store(), WithRequest(MakeEvaluation("e1"), "r1", "digest")));
  ASSERT_OK(Lease(store(), MakeGrant("e1", 1)));
  ASSERT_OK_AND_ASSIGN(const CreatedEvaluation again,
                       CreateOne(store(), WithRequest(MakeEvaluation("e2"), "r1", "digest")));
  EXPECT_TRUE(again.existed);
  EXPECT_EQ(again.evaluation.name(), "evaluations/e1");
  EXPECT_EQ(again.evaluation.state(), v1::RUNNING) << "as it is now, not as it was created";
  EXPECT_THAT(store().GetEvaluation("evaluations/e2", false), HasReason("EVALUATION_NOT_FOUND"));

  EXPECT_THAT(
      CreateOne(store(), WithRequest(MakeEvaluation("e3", "c9"), "r1", "other")),
      ::testing::AllOf(StatusIs(absl::StatusCode::kAlreadyExists), HasReason("REQUEST_ID_REUSED")));
  EXPECT_THAT(store().GetCandidate(MakeCandidate("c9").name()), HasReason("CANDIDATE_NOT_FOUND"));
  // Without an id nothing is compared.
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e4")));
  ASSERT_OK_AND_ASSIGN(const CreatedEvaluation other, CreateOne(store(), MakeEvaluation("e5")));
  EXPECT_FALSE(other.existed);
}

TEST_P(StoreConformanceTest, ABatchIsAllOrNothing) {
  ASSERT_OK(CreateOne(store(), WithRequest(MakeEvaluation("e1"), "r1", "digest")));
  EXPECT_THAT(CreateEvaluations(store(), Batch({MakeEvaluation("e2", "c2"),
                                                WithRequest(MakeEvaluation("e3"), "r1", "other"),
                                                MakeEvaluation("e4")})),
              HasReason("REQUEST_ID_REUSED"));
  EXPECT_THAT(CreateEvaluations(
                  store(), Batch({MakeEvaluation("e2", "c2"), MakeEvaluation("e3", "c3", "none")})),
              HasReason("PROBLEM_NOT_FOUND"));
  EXPECT_THAT(
      CreateEvaluations(store(), Batch({MakeEvaluation("e2", "c2"), MakeEvaluation("e1", "c3")})),
      ::testing::AllOf(StatusIs(absl::StatusCode::kAlreadyExists), HasReason("EVALUATION_EXISTS")));
  EXPECT_EQ(store().ListEvaluations({}, Page())->items.size(), 1u);
  EXPECT_EQ(store().ListCandidates("", Page())->items.size(), 1u);
}

TEST_P(StoreConformanceTest, ABatchMayHoldKnownAndRepeatedRequestIds) {
  ASSERT_OK(CreateOne(store(), WithRequest(MakeEvaluation("e1"), "r1", "d1")));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<CreatedEvaluation> created,
      CreateEvaluations(store(), Batch({WithRequest(MakeEvaluation("e2"), "r2", "d2"),
                                        WithRequest(MakeEvaluation("e3"), "r1", "d1"),
                                        WithRequest(MakeEvaluation("e4"), "r2", "d2"),
                                        WithRequest(MakeEvaluation("e5"), "r1", "d1")})));
  std::vector<std::string> seen;
  for (const CreatedEvaluation& one : created) {
    seen.push_back(absl::StrCat(one.evaluation.name(), one.existed ? " existed" : ""));
  }
  EXPECT_THAT(seen, ElementsAre("evaluations/e2", "evaluations/e1 existed",
                                "evaluations/e2 existed", "evaluations/e1 existed"));
  EXPECT_THAT(CreateEvaluations(store(), Batch({WithRequest(MakeEvaluation("e6"), "r3", "d3"),
                                                WithRequest(MakeEvaluation("e7"), "r3", "d4")})),
              HasReason("REQUEST_ID_REUSED"));
  EXPECT_EQ(store().ListEvaluations({}, Page())->items.size(), 2u);
}

TEST_P(StoreConformanceTest, ConcurrentRequestsWithOneIdCreateOneEvaluation) {
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::atomic<int> fresh = 0;
  absl::Mutex mutex;
  std::set<std::string> names;
  absl::BlockingCounter left(kThreads * kEach);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        store().CreateEvaluations(
            Batch({WithRequest(MakeEvaluation(absl::StrCat("e", t, "-", i)), "r1", "d")}),
            [&](absl::StatusOr<std::vector<CreatedEvaluation>> created) {
              EXPECT_OK(created);
              if (created.ok()) {
                if (!created->at(0).existed) ++fresh;
                absl::MutexLock lock(&mutex);
                names.insert(created->at(0).evaluation.name());
              }
              left.DecrementCount();
            });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  left.Wait();
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(names.size(), 1u);
  EXPECT_EQ(store().ListEvaluations({}, Page())->items.size(), 1u);
}

TEST_P(StoreConformanceTest, WritesOfOneGroupFailOnTheirOwn) {
  // A name that exists is found late; its neighbours must not suffer.
  ASSERT_OK(CreateOne(store(), MakeEvaluation("taken")));
  constexpr int kCount = 60;
  std::vector<absl::Status> statuses(kCount);
  absl::BlockingCounter left(kCount);
  for (int i = 0; i < kCount; ++i) {
    const std::string id = i % 10 == 3 ? "taken" : absl::StrCat("e", 100 + i);
    store().CreateEvaluations(
        Batch({MakeEvaluation(absl::StrCat("first", i), absl::StrCat("c", i)), MakeEvaluation(id)}),
        [&, i](absl::StatusOr<std::vector<CreatedEvaluation>> created) {
          statuses[i] = created.status();
          left.DecrementCount();
        });
  }
  left.Wait();
  for (int i = 0; i < kCount; ++i) {
    const bool taken = i % 10 == 3;
    EXPECT_EQ(GetReason(statuses[i]), taken ? "EVALUATION_EXISTS" : "") << i << statuses[i];
    EXPECT_EQ(store().GetEvaluation(absl::StrCat("evaluations/first", i), false).ok(), !taken) << i;
    EXPECT_EQ(store().GetCandidate(MakeCandidate(absl::StrCat("c", i)).name()).ok(), !taken) << i;
  }
}

TEST_P(StoreConformanceTest, AStoredAnswerIsKeptWhole) {
  NewEvaluation answered = MakeEvaluation("e1");
  answered.evaluation.set_state(v1::SUCCEEDED);
  answered.evaluation.set_answered_by("evaluations/e0");
  *answered.evaluation.mutable_outcome() = MakeOutcome("small", 100);
  ASSERT_OK_AND_ASSIGN(const CreatedEvaluation created, CreateOne(store(), answered));
  EXPECT_EQ(created.evaluation.outcome().build().log(), "build log");
  EXPECT_EQ(created.evaluation.outcome().workload_results(0).measurement().runners_size(), 0);
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation stored, store().GetEvaluation("evaluations/e1", true));
  EXPECT_THAT(stored.outcome(), EqualsProto(answered.evaluation.outcome()));
  EXPECT_TRUE(stored.timeline().has_complete_time());
  // It has no lease that could complete, and nothing was run that could rank or answer others.
  EXPECT_THAT(Complete(store(), MakeCompletion("e1", 0, MakeOutcome("small", 1))),
              HasReason("LEASE_FENCED"));
  EXPECT_THAT(*store().Leaderboard({}), IsEmpty());
  EXPECT_THAT(*store().ListUnfinished(), IsEmpty());
}

}  // namespace assay
