#include "kernels/contract.h"

#include <functional>
#include <string>

#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

v1::Problem WithContracts() {
  v1::Problem problem = testing::ScaleRowsProblem();
  problem.MergeFrom(testing::ProblemFromText(R"pb(
    contracts { name: "f32" accumulator: F32 any_order: true }
    contracts {
      name: "tf32"
      operand_roundings: TF32
      accumulator: F32
      any_order: true
      tolerances {
        tensor: "y"
        tolerance { kind: SCALED relative_l2_max: 1e-3 element_max: 4e-3 }
      }
    }
  )pb"));
  return problem;
}

const v1::TolerancePolicy& ToleranceOfY(const v1::Problem& problem) {
  return problem.tensors(0).tolerance();
}

TEST(ContractTest, TheFirstIsMeantWhereNoneIsNamed) {
  const v1::Problem problem = WithContracts();
  ASSERT_OK(ValidateProblem(problem));
  ASSERT_OK_AND_ASSIGN(const v1::ArithmeticContract* first, FindContract(problem, ""));
  EXPECT_EQ(first->name(), "f32");
  ASSERT_OK_AND_ASSIGN(const v1::ArithmeticContract* none,
                       FindContract(testing::ScaleRowsProblem(), ""));
  EXPECT_EQ(none, nullptr);
  const auto unknown = FindContract(problem, "f64");
  EXPECT_THAT(unknown, HasReason("CONTRACT_UNKNOWN"));
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("f32, tf32"));
  EXPECT_THAT(FindContract(testing::ScaleRowsProblem(), "f32"), HasReason("CONTRACT_UNKNOWN"));
}

TEST(ContractTest, ItsTolerancesStandForThoseOfTheTensors) {
  const v1::Problem problem = WithContracts();
  ASSERT_OK_AND_ASSIGN(const v1::Problem strict, ProblemUnderContract(problem, ""));
  EXPECT_EQ(ToleranceOfY(strict).relative_l2_max(), 1e-6);
  EXPECT_TRUE(ToleranceOfY(strict).scale_per_row());
  ASSERT_OK_AND_ASSIGN(const v1::Problem loose, ProblemUnderContract(problem, "tf32"));
  EXPECT_EQ(ToleranceOfY(loose).relative_l2_max(), 1e-3);
  EXPECT_FALSE(ToleranceOfY(loose).scale_per_row());
  EXPECT_EQ(strict.work().unit(), v1::WorkModel::FLOP_F32);
  EXPECT_EQ(loose.work().unit(), v1::WorkModel::FLOP_F16);
  ASSERT_EQ(loose.contracts_size(), 1);
  EXPECT_EQ(loose.contracts(0).name(), "tf32");
  EXPECT_THAT(ProblemUnderContract(problem, "tf64"), HasReason("CONTRACT_UNKNOWN"));
}

TEST(ContractTest, DigestsFollowContractsAndNothingElseChanges) {
  const v1::Problem plain = testing::ScaleRowsProblem();
  // A change here makes stored problems new ones.
  EXPECT_EQ(ProblemDigest(plain).substr(0, 16), "f9b494de6d52c027");
  EXPECT_NE(ProblemDigest(WithContracts()), ProblemDigest(plain));
  v1::Problem audited = plain;
  audited.mutable_audit()->set_mutant_count(3);
  EXPECT_EQ(ProblemDigest(audited), ProblemDigest(plain));

  v1::Candidate candidate;
  candidate.mutable_spec()->set_problem("scale_rows");
  candidate.mutable_spec()->set_language(v1::CPP);
  v1::SourceFile* file = candidate.add_files();
  file->set_path("a.cc");
  file->set_content("// nothing\n");
  const std::string digest = CandidateDigest(candidate);
  EXPECT_EQ(digest.substr(0, 16), "a796f35958804ccd");
  candidate.mutable_spec()->set_contract("tf32");
  EXPECT_NE(CandidateDigest(candidate), digest);
  EXPECT_OK(ValidateCandidate(candidate));
  EXPECT_OK(CheckCandidateAgainstProblem(candidate, WithContracts()));
  EXPECT_THAT(CheckCandidateAgainstProblem(candidate, plain), HasReason("CONTRACT_UNKNOWN"));
  candidate.mutable_spec()->set_contract("TF32");
  EXPECT_THAT(ValidateCandidate(candidate), HasReason("CANDIDATE_MALFORMED"));
}

TEST(ContractTest, WhatIsRefusedInAProblem) {
  const struct {
    std::function<void(v1::Problem*)> change;
    std::string message;
  } rows[] = {
      {[](auto* p) { p->mutable_contracts(1)->set_name("f32"); }, "unique"},
      {[](auto* p) { p->mutable_contracts(1)->set_name("F32"); }, "[a-z0-9_-]"},
      {[](auto* p) { p->mutable_contracts(0)->clear_name(); }, "[a-z0-9_-]"},
      {[](auto* p) { p->mutable_contracts(0)->clear_accumulator(); }, "accumulator"},
      {[](auto* p) {
         p->mutable_contracts(1)->add_operand_roundings(v1::ArithmeticContract::TF32);
       },
       "once at most"},
      {[](auto* p) { p->mutable_contracts(1)->mutable_tolerances(0)->set_tensor("x"); },
       "no output"},
      {[](auto* p) {
         auto* tolerance = p->mutable_contracts(1)->mutable_tolerances(0)->mutable_tolerance();
         tolerance->set_element_max(1);
       },
       "between 0 and 1"},
      {[](auto* p) {
         auto* tolerance = p->mutable_contracts(1)->mutable_tolerances(0)->mutable_tolerance();
         tolerance->set_kind(v1::TolerancePolicy::BITWISE);
       },
       "kind"},
      {[](auto* p) { *p->mutable_contracts(1)->add_tolerances() = p->contracts(1).tolerances(0); },
       "twice"},
  };
  for (const auto& row : rows) {
    v1::Problem problem = WithContracts();
    row.change(&problem);
    const absl::Status status = ValidateProblem(problem);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace assay
