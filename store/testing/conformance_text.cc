// Text of candidates in what the store keeps and finds.
#include "absl/strings/str_cat.h"
#include "base/nasty_text.h"
#include "base/test_matchers.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "store/testing/builders.h"
#include "store/testing/conformance.h"

namespace assay {

TEST_P(StoreConformanceTest, AnyTextIsKeptAndFoundAsItIs) {
  using Field = EvaluationCondition::Field;
  using Operator = EvaluationCondition::Operator;
  const std::vector<std::string> texts = NastyTexts();
  for (size_t i = 0; i < texts.size(); ++i) {
    NewEvaluation made = testing::MakeEvaluation(absl::StrCat("e", i), absl::StrCat("c", i));
    made.evaluation.set_candidate_label(texts[i]);
    made.evaluation.set_creator(texts[i]);
    v1::CandidateSpec& spec = *made.candidate->mutable_spec();
    spec.set_label(texts[i]);
    spec.mutable_origin()->set_author(texts[i]);
    spec.mutable_origin()->set_model(texts[i]);
    made.request_id = texts[i];
    made.request_digest = texts[i];
    ASSERT_OK(testing::CreateOne(store(), made)) << PrintableLine(texts[i]);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(PrintableLine(texts[i]));
    ASSERT_OK_AND_ASSIGN(
        const auto listed,
        store().ListEvaluations({{Field::kLabel, Operator::kEqual, texts[i], 0}}, {}));
    ASSERT_EQ(listed.items.size(), 1u);
    EXPECT_EQ(listed.items[0].name(), absl::StrCat("evaluations/e", i));
    EXPECT_EQ(listed.items[0].creator(), texts[i]);
    ASSERT_OK_AND_ASSIGN(const v1::Candidate candidate,
                         store().GetCandidate(listed.items[0].candidate()));
    EXPECT_EQ(candidate.spec().origin().author(), texts[i]);
    // As names they find nothing, and break nothing.
    EXPECT_THAT(store().GetEvaluation(texts[i], true), HasReason("EVALUATION_NOT_FOUND"));
    EXPECT_THAT(store().GetCandidate(texts[i]), HasReason("CANDIDATE_NOT_FOUND"));
    EXPECT_THAT(store().GetProblem(texts[i], 0), HasReason("PROBLEM_NOT_FOUND"));
    EXPECT_THAT(store().FindByIdentity(texts[i]), HasReason("EVALUATION_NOT_FOUND"));
    ASSERT_OK_AND_ASSIGN(const auto ranked, store().Leaderboard({.problem = texts[i],
                                                                 .workload = texts[i],
                                                                 .device_class = texts[i],
                                                                 .contract = texts[i]}));
    EXPECT_TRUE(ranked.empty());
  }
}

}  // namespace assay
