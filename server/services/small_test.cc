// Ids, page tokens, identity, the catalogue and the candidate cache.
#include <set>
#include <string>

#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "server/services/catalogue.h"
#include "server/services/identity.h"
#include "server/services/ids.h"
#include "server/services/page_token.h"
#include "store/testing/builders.h"
#include "store/testing/fake_store.h"

namespace assay {
namespace {

TEST(EvaluationIds, GrowAndAreUniqueWhileTheClockStands) {
  FakeClock clock;
  EvaluationIds ids(&clock);
  std::string last;
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = ids.NextName();
    ASSERT_LT(last, name);
    ASSERT_EQ(name.size(), std::string("evaluations/").size() + 32);
    last = name;
  }
  clock.Advance(absl::Seconds(100));
  EXPECT_LT(last, ids.NextName());
}

TEST(EvaluationIds, DifferAcrossProcessesOfTheSameMillisecond) {
  FakeClock clock;
  EXPECT_NE(EvaluationIds(&clock).NextName(), EvaluationIds(&clock).NextName());
}

TEST(PageToken, RoundTripsForItsListOnly) {
  const std::string token = EncodePageToken("list a", "key/17");
  ASSERT_OK_AND_ASSIGN(const Page page, MakePage("list a", 7, token));
  EXPECT_EQ(page.after, "key/17");
  EXPECT_EQ(page.size, 7);
  std::string changed = token;
  changed[0] = changed[0] == 'A' ? 'B' : 'A';
  const std::pair<std::string, std::string> wrong[] = {
      {"list b", token},          {"list a", token.substr(1)},        {"list a", changed},
      {"list a", "!!"},           {"list a", std::string(5000, 'A')}, {"list a", "AAAA"},
      {"list a", token + "AAAA"},
  };
  for (const auto& [list, text] : wrong) {
    EXPECT_THAT(MakePage(list, 0, text), HasReason("PAGE_TOKEN_INVALID")) << list << " " << text;
  }
  EXPECT_EQ(EncodePageToken("list a", ""), "");
}

TEST(PageToken, SizesAreBounded) {
  EXPECT_EQ(MakePage("l", 0, "")->size, limits::kPageSizeDefault);
  EXPECT_EQ(MakePage("l", 1'000'000, "")->size, limits::kPageSizeMax);
  EXPECT_THAT(MakePage("l", -1, ""), HasReason("PAGE_SIZE_INVALID"));
}

struct IdentityParts {
  v1::Evaluation evaluation;
  v1::Problem problem;
  v1::Environment environment;
  std::string device_class = "cpu-x-avx2";
  std::string Digest() const {
    return EvaluationIdentity(evaluation, problem, environment, device_class);
  }
};

IdentityParts MakeParts() {
  IdentityParts parts;
  parts.evaluation.set_problem("problems/gelu");
  parts.evaluation.set_candidate("candidates/aa");
  parts.evaluation.set_level(v1::QUICK);
  parts.evaluation.set_device_class("cpu");
  (*parts.evaluation.mutable_configuration())["BLOCK"] = 8;
  (*parts.evaluation.mutable_configuration())["UNROLL"] = 2;
  parts.evaluation.mutable_create_time()->set_seconds(100);
  parts.problem.set_digest("dd");
  parts.problem.set_version(3);
  parts.problem.mutable_create_time()->set_seconds(50);
  parts.problem.add_workloads()->set_name("small");
  parts.problem.add_workloads()->set_name("large");
  parts.environment.set_harness_version("h1");
  parts.environment.set_compiler("g++ 12");
  parts.environment.set_instruction_set("x86_64 avx2");
  return parts;
}

TEST(Identity, EveryPartCounts) {
  const std::string base = MakeParts().Digest();
  EXPECT_EQ(base.size(), 64u);
  EXPECT_EQ(base, MakeParts().Digest());
  const std::pair<const char*, std::function<void(IdentityParts*)>> changes[] = {
      {"candidate", [](auto* p) { p->evaluation.set_candidate("candidates/ab"); }},
      {"configuration", [](auto* p) { (*p->evaluation.mutable_configuration())["BLOCK"] = 9; }},
      {"level", [](auto* p) { p->evaluation.set_level(v1::RANKED); }},
      {"workloads", [](auto* p) { p->evaluation.add_workloads()->set_name("small"); }},
      {"axes", [](auto* p) { (*p->evaluation.add_workloads()->mutable_axes())["n"] = 4; }},
      {"baseline", [](auto* p) { p->evaluation.set_baseline_candidate("candidates/ac"); }},
      {"pairs", [](auto* p) { p->evaluation.set_pair_count(9); }},
      {"problem digest", [](auto* p) { p->problem.set_digest("de"); }},
      {"problem version", [](auto* p) { p->problem.set_version(4); }},
      {"harness", [](auto* p) { p->environment.set_harness_version("h2"); }},
      {"compiler", [](auto* p) { p->environment.set_compiler("g++ 13"); }},
      {"isa", [](auto* p) { p->environment.set_instruction_set("x86_64 avx512f"); }},
      {"device class", [](auto* p) { p->device_class = "cpu-y-avx2"; }},
  };
  std::set<std::string> seen = {base};
  for (const auto& [what, change] : changes) {
    IdentityParts parts = MakeParts();
    change(&parts);
    const std::string digest = parts.Digest();
    EXPECT_EQ(digest.size(), 64u) << what;
    EXPECT_TRUE(seen.insert(digest).second) << what;
  }
}

TEST(Identity, WhatDoesNotCount) {
  const std::string base = MakeParts().Digest();
  IdentityParts parts = MakeParts();
  parts.evaluation.set_name("evaluations/1");
  parts.evaluation.set_priority(5);
  parts.evaluation.set_device_class("cpu-x-avx2");
  parts.evaluation.set_candidate_label("other");
  parts.environment.set_kernel("Linux 6");
  // All workloads of the problem, spelled out.
  parts.evaluation.add_workloads()->set_name("small");
  parts.evaluation.add_workloads()->set_name("large");
  EXPECT_EQ(parts.Digest(), base);
}

TEST(Identity, IsWithheldWhenSomethingIsUnsaid) {
  IdentityParts parts = MakeParts();
  parts.environment.clear_compiler();
  EXPECT_EQ(parts.Digest(), "");
  parts = MakeParts();
  parts.environment.clear_harness_version();
  EXPECT_EQ(parts.Digest(), "");
  parts = MakeParts();
  parts.device_class = "";
  EXPECT_EQ(parts.Digest(), "");
  // The problem changed after the evaluation was created.
  parts = MakeParts();
  parts.problem.mutable_create_time()->set_seconds(101);
  EXPECT_EQ(parts.Digest(), "");
}

TEST(RequestDigest, CoversTheRequestAndNotTheMoment) {
  v1::Evaluation evaluation = MakeParts().evaluation;
  const std::string base = RequestDigest(evaluation, false);
  v1::Evaluation same = evaluation;
  same.set_name("evaluations/2");
  same.mutable_create_time()->set_seconds(999);
  EXPECT_EQ(RequestDigest(same, false), base);
  EXPECT_NE(RequestDigest(evaluation, true), base);
  same = evaluation;
  same.set_priority(1);
  EXPECT_NE(RequestDigest(same, false), base);
  same = evaluation;
  same.set_device_class("cpu-x");
  EXPECT_NE(RequestDigest(same, false), base);
}

TEST(DeviceMatches, KindOrExactClass) {
  v1::Device device;
  device.set_kind("cpu");
  device.set_device_class("cpu-x-avx2");
  EXPECT_TRUE(DeviceMatches("cpu", device));
  EXPECT_TRUE(DeviceMatches("cpu-x-avx2", device));
  EXPECT_FALSE(DeviceMatches("cpu-x", device));
  EXPECT_FALSE(DeviceMatches("cuda", device));
}

TEST(Catalogue, LoadsTheNewestVersionsOfTheStore) {
  FakeStore store;
  ASSERT_OK(testing::CreateProblem(store, testing::MakeProblem("gelu", 1, "a")));
  ASSERT_OK(testing::CreateProblem(store, testing::MakeProblem("gelu", 2, "b")));
  ASSERT_OK(testing::CreateProblem(store, testing::MakeProblem("scan", 1, "a")));
  Catalogue catalogue;
  ASSERT_OK(catalogue.Load(store));
  EXPECT_EQ(catalogue.size(), 2u);
  ASSERT_NE(catalogue.Find("problems/gelu"), nullptr);
  EXPECT_EQ(catalogue.Find("problems/gelu")->version(), 2);
  EXPECT_EQ(catalogue.Find("problems/gelu")->files_size(), 0);
  EXPECT_EQ(catalogue.Find("problems/none"), nullptr);
  // A late answer for an old version does not turn the clock back.
  catalogue.Put(testing::MakeProblem("gelu", 1, "a"));
  EXPECT_EQ(catalogue.Find("problems/gelu")->version(), 2);
}

TEST(CandidateCache, KeepsTheLastUsed) {
  CandidateCache cache(2);
  const v1::Candidate a = testing::MakeCandidate("a");
  const v1::Candidate b = testing::MakeCandidate("b");
  const v1::Candidate c = testing::MakeCandidate("c");
  cache.Put(a);
  cache.Put(b);
  cache.Put(b);
  ASSERT_NE(cache.Find(a.name()), nullptr);  // now b is the older one
  cache.Put(c);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_NE(cache.Find(a.name()), nullptr);
  EXPECT_EQ(cache.Find(b.name()), nullptr);
  ASSERT_NE(cache.Find(c.name()), nullptr);
  EXPECT_EQ(cache.Find(c.name())->files_size(), 0);
}

}  // namespace
}  // namespace assay
