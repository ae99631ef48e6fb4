#include "server/access/access_control.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/secret.h"
#include "store/records.h"
#include "store/store.h"
#include "store/testing/builders.h"
#include "store/testing/fake_store.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AccessControlTest : public ::testing::Test {
 protected:
  // What a server does that starts on this store.
  void Start(bool tokens, bool certificates = false) {
    access_ = std::make_unique<AccessControl>(
        AccessControl::Options{&clock_, &store_, tokens, certificates});
    ASSERT_OK(access_->Load());
  }

  v1::Token MakeToken(const std::string& id, v1::Token::Scope scope) {
    v1::Token token;
    token.set_name("tokens/" + id);
    token.add_scopes(scope);
    return token;
  }

  // Its secret.
  std::string Create(const v1::Token& token) {
    const std::string secret = NewSecret();
    const StoredToken stored{token, SecretDigest(secret)};
    store_.CreateToken(stored, {},
                       [](const absl::StatusOr<v1::Token>& token) { EXPECT_OK(token); });
    store_.RunPending();
    if (access_ != nullptr) access_->PutToken(stored);
    return secret;
  }

  std::shared_ptr<CallAccess> Begin(std::string_view method, const std::string& secret,
                                    const std::string& peer = "ipv4:10.0.0.7:1000",
                                    bool certificate = false, std::string_view resource = "") {
    CallFacts facts;
    facts.method = method;
    facts.authorization = secret.empty() ? "" : "Bearer " + secret;
    facts.peer = peer;
    facts.has_certificate = certificate;
    return access_->Begin(facts, resource);
  }

  absl::Status Call(std::string_view method, const std::string& secret,
                    const std::string& peer = "ipv4:10.0.0.7:1000") {
    const auto call = Begin(method, secret, peer);
    if (call == nullptr) return absl::OkStatus();
    bool answered = false;
    access_->End(*call, call->refusal.code(),
                 [&](const absl::Status& recorded) { answered = recorded.ok(); });
    store_.RunPending();
    EXPECT_TRUE(answered);
    return call->refusal;
  }

  // "method token resource code", newest first.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    const auto listed = store_.ListAccessEvents({});
    EXPECT_OK(listed);
    if (!listed.ok()) return events;
    for (const v1::AccessEvent& event : listed->items) {
      events.push_back(absl::StrCat(event.method(), " ", event.token(), " ", event.resource(), " ",
                                    event.code()));
    }
    return events;
  }

  FakeClock clock_;
  FakeStore store_{FakeStore::Mode::kManual};
  std::unique_ptr<AccessControl> access_;
};

TEST_F(AccessControlTest, WithoutTokensEverythingIsAllowedAndAdministrationIsRecorded) {
  Start(false);
  EXPECT_EQ(Begin("CreateEvaluation", ""), nullptr);
  EXPECT_EQ(Begin("RegisterWorker", ""), nullptr);
  const auto drain = Begin("DrainWorker", "", "ipv4:10.0.0.7:1000", false, "workers/w1");
  ASSERT_NE(drain, nullptr);
  EXPECT_OK(drain->refusal);
  EXPECT_OK(access_->DemandAdmin("this", drain.get()));
  access_->End(*drain, absl::StatusCode::kNotFound, [](const absl::Status&) {});
  store_.RunPending();
  EXPECT_THAT(Events(), ElementsAre("/assay.v1.FleetService/DrainWorker  workers/w1 NOT_FOUND"));
  EXPECT_THAT(Call("Frobnicate", ""), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(AccessControlTest, ScopesGrow) {
  Start(true);
  const std::string read = Create(MakeToken("r", v1::Token::READ));
  const std::string submit = Create(MakeToken("s", v1::Token::SUBMIT));
  const std::string admin = Create(MakeToken("a", v1::Token::ADMIN));
  const std::string work = Create(MakeToken("w", v1::Token::WORK));
  const struct {
    const char* method;
    std::vector<const std::string*> allowed;
  } cases[] = {
      {"GetEvaluation", {&read, &submit, &admin}},
      {"CreateEvaluation", {&submit, &admin}},
      {"CreateToken", {&admin}},
      {"RegisterWorker", {&work}},
  };
  for (const auto& c : cases) {
    for (const std::string* secret : {&read, &submit, &admin, &work}) {
      const bool allowed = std::count(c.allowed.begin(), c.allowed.end(), secret) > 0;
      const absl::Status status = Call(c.method, *secret);
      if (allowed) {
        EXPECT_OK(status) << c.method;
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(c.method)));
        EXPECT_THAT(status, HasReason("SCOPE_MISSING"));
      }
    }
    EXPECT_THAT(Call(c.method, ""), HasReason("TOKEN_MISSING"));
  }
}

TEST_F(AccessControlTest, SaysWhyATokenDoesNotHold) {
  Start(true);
  v1::Token brief = MakeToken("brief", v1::Token::READ);
  *brief.mutable_expire_time() = ToTimestamp(clock_.Now() + absl::Seconds(10));
  const std::string secret = Create(brief);
  EXPECT_OK(Call("GetProblem", secret));
  const auto stream = Begin("WatchEvaluation", secret);
  EXPECT_OK(access_->Recheck(*stream));
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Call("GetProblem", secret), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(Call("GetProblem", secret), HasReason("TOKEN_EXPIRED"));
  EXPECT_THAT(access_->Recheck(*stream), HasReason("TOKEN_EXPIRED"));
  brief.clear_expire_time();
  *brief.mutable_revoke_time() = ToTimestamp(clock_.Now());
  access_->UpdateToken(brief);
  EXPECT_THAT(Call("GetProblem", secret), HasReason("TOKEN_REVOKED"));
  EXPECT_THAT(access_->Recheck(*stream), HasReason("TOKEN_REVOKED"));
  // The same after a restart.
  store_.RevokeToken("tokens/brief", clock_.Now(), [](const absl::StatusOr<v1::Token>&) {});
  store_.RunPending();
  Start(true);
  EXPECT_THAT(Call("GetProblem", secret), HasReason("TOKEN_REVOKED"));

  for (const std::string& wrong :
       {NewSecret(), secret + "x", secret.substr(1), std::string("brief"), std::string(5000, 'x'),
        std::string("tokens/brief")}) {
    const absl::Status status = Call("GetProblem", wrong);
    EXPECT_THAT(status, HasReason("TOKEN_INVALID"));
    // Neither a name nor what was sent.
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("brief")));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(wrong)));
  }
  const AccessCounters counters = access_->Counters();
  EXPECT_EQ(counters.refusals[1], 6);
  EXPECT_EQ(counters.refusals[3], 1);
}

TEST_F(AccessControlTest, KnowsWhenTheTokenOfAnOpenStreamExpires) {
  Start(true);
  std::vector<std::shared_ptr<CallAccess>> calls;
  for (const char* id : {"first", "second", "endless"}) {
    v1::Token token = MakeToken(id, v1::Token::READ);
    const absl::Duration life = absl::Seconds(10 * static_cast<int>(calls.size() + 1));
    if (id[0] != 'e') *token.mutable_expire_time() = ToTimestamp(clock_.Now() + life);
    calls.push_back(Begin("WatchEvaluation", Create(token)));
    ASSERT_OK(calls.back()->refusal);
    ASSERT_OK(access_->AddStream(*calls.back()));
    ASSERT_OK(access_->AddStream(*calls.back()));
    access_->RemoveStream(*calls.back());
  }
  EXPECT_FALSE(access_->TakeExpiredStreams());
  clock_.Advance(absl::Seconds(10));
  EXPECT_TRUE(access_->TakeExpiredStreams());
  EXPECT_FALSE(access_->TakeExpiredStreams()) << "told once";
  access_->RemoveStream(*calls[0]);
  // Without an open stream there is nothing to end.
  access_->RemoveStream(*calls[1]);
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(access_->TakeExpiredStreams());
  access_->RemoveStream(*calls[2]);
}

TEST_F(AccessControlTest, ASecondRunCountsToNobody) {
  Start(true);
  v1::Token small = MakeToken("small", v1::Token::SUBMIT);
  small.set_unfinished_evaluations_max(2);
  Create(small);
  store_.CreateProblem(testing::MakeProblem("gelu"), [](const auto& p) { EXPECT_OK(p); });
  NewEvaluation own = testing::MakeEvaluation("own");
  own.evaluation.set_creator("tokens/small");
  NewEvaluation second = testing::MakeEvaluation("second");
  second.evaluation.set_creator("tokens/small");
  second.evaluation.set_confirms("evaluations/first");
  store_.CreateEvaluations({own, second}, [](const auto& created) { EXPECT_OK(created); });
  store_.RunPending();
  Start(true);
  EXPECT_OK(access_->AddUnfinished("tokens/small", {"evaluations/a"}));
  EXPECT_THAT(access_->AddUnfinished("tokens/small", {"evaluations/b"}),
              HasReason("QUOTA_EXCEEDED"));
}

TEST_F(AccessControlTest, AWorkerShowsACertificateOrAToken) {
  Start(/*tokens=*/false, /*certificates=*/true);
  const std::string work = Create(MakeToken("w", v1::Token::WORK));
  const std::string admin = Create(MakeToken("a", v1::Token::ADMIN));
  EXPECT_EQ(Begin("AcquireLease", "", "ipv4:10.0.0.7:1", /*certificate=*/true), nullptr);
  EXPECT_OK(Call("AcquireLease", work));
  EXPECT_THAT(Call("AcquireLease", ""), HasReason("TOKEN_MISSING"));
  EXPECT_THAT(std::string(Call("AcquireLease", "").message()), HasSubstr("certificate"));
  EXPECT_THAT(Call("AcquireLease", admin), HasReason("SCOPE_MISSING"));
  EXPECT_EQ(Begin("GetProblem", ""), nullptr);
  // A certificate makes nobody a client.
  Start(/*tokens=*/true, /*certificates=*/true);
  EXPECT_EQ(Begin("AcquireLease", "", "ipv4:10.0.0.7:1", true), nullptr);
  EXPECT_THAT(Begin("DrainWorker", "", "ipv4:10.0.0.7:1", true)->refusal,
              HasReason("TOKEN_MISSING"));
}

TEST_F(AccessControlTest, LimitsTheRateOfEachToken) {
  Start(true);
  v1::Token slow = MakeToken("slow", v1::Token::READ);
  slow.set_requests_per_second(1);
  slow.set_requests_burst(2);
  const std::string secret = Create(slow);
  const std::string other = Create(MakeToken("other", v1::Token::READ));
  EXPECT_OK(Call("GetProblem", secret));
  EXPECT_OK(Call("GetProblem", secret));
  const absl::Status refused = Call("GetProblem", secret);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("wait 1s")));
  EXPECT_THAT(refused, HasReason("RATE_LIMITED"));
  EXPECT_OK(Call("GetProblem", other));
  clock_.Advance(absl::Seconds(1));
  EXPECT_OK(Call("GetProblem", secret));
  // Leases are kept alive by calls.
  v1::Token worker = slow;
  worker.set_name("tokens/worker");
  worker.set_scopes(0, v1::Token::WORK);
  const std::string work = Create(worker);
  for (int i = 0; i < 10; ++i) EXPECT_OK(Call("RenewLease", work)) << i;
}

TEST_F(AccessControlTest, LimitsAddressesWithoutAToken) {
  Start(true);
  const std::string good = Create(MakeToken("good", v1::Token::READ));
  for (int i = 0; i < limits::kRefusedCallsBurst; ++i) {
    // The port changes with every connection.
    EXPECT_THAT(Call("DrainWorker", "wrong", absl::StrCat("ipv4:10.0.0.7:", 1000 + i)),
                HasReason("TOKEN_INVALID"));
  }
  const absl::Status limited = Call("DrainWorker", "", "ipv4:10.0.0.7:9");
  EXPECT_THAT(limited, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(limited, HasReason("RATE_LIMITED"));
  // Attempts at administration are recorded, but not endlessly; who has a token is let in all the
  // same, and so is another address.
  EXPECT_EQ(static_cast<int>(Events().size()), limits::kRefusedCallsBurst);
  EXPECT_OK(Call("GetProblem", good, "ipv4:10.0.0.7:9"));
  EXPECT_THAT(Call("GetProblem", "wrong", "ipv6:%5B::1%5D:9"), HasReason("TOKEN_INVALID"));
  // Any number of addresses takes bounded memory: the oldest is forgotten, and starts anew.
  for (size_t i = 0; i < limits::kAccessAddressesMax; ++i) {
    EXPECT_THAT(Call("GetProblem", "wrong", absl::StrCat("ipv4:host", i, ":1")),
                HasReason("TOKEN_INVALID"));
  }
  EXPECT_THAT(Call("GetProblem", "", "ipv4:10.0.0.7:9"), HasReason("TOKEN_MISSING"));
}

TEST_F(AccessControlTest, CountsUnfinishedEvaluations) {
  Start(true);
  v1::Token small = MakeToken("small", v1::Token::SUBMIT);
  small.set_unfinished_evaluations_max(3);
  Create(small);
  EXPECT_OK(access_->AddUnfinished("tokens/small", {"evaluations/1", "evaluations/2"}));
  const absl::Status refused =
      access_->AddUnfinished("tokens/small", {"evaluations/3", "evaluations/4"});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("may have 3")));
  EXPECT_THAT(refused, HasReason("QUOTA_EXCEEDED"));
  EXPECT_OK(access_->AddUnfinished("tokens/small", {"evaluations/3"}));
  // The same end twice frees one place.
  access_->RemoveUnfinished("tokens/small", "evaluations/1");
  access_->RemoveUnfinished("tokens/small", "evaluations/1");
  access_->RemoveUnfinished("tokens/small", "evaluations/none");
  access_->RemoveUnfinished("tokens/none", "evaluations/2");
  EXPECT_OK(access_->AddUnfinished("tokens/small", {"evaluations/4"}));
  EXPECT_THAT(access_->AddUnfinished("tokens/small", {"evaluations/5"}),
              HasReason("QUOTA_EXCEEDED"));
  for (const char* unlimited : {"", "tokens/none"}) {
    EXPECT_OK(access_->AddUnfinished(unlimited, {"evaluations/6"})) << unlimited;
  }
}

TEST_F(AccessControlTest, CountsWhatWasUnfinishedBeforeARestart) {
  store_.CreateProblem(testing::MakeProblem("gelu"), [](const absl::StatusOr<v1::Problem>&) {});
  NewEvaluation waiting = testing::MakeEvaluation("waiting");
  waiting.evaluation.set_creator("tokens/small");
  store_.CreateEvaluations({waiting}, [](const auto& created) { EXPECT_OK(created); });
  store_.RunPending();
  v1::Token small = MakeToken("small", v1::Token::SUBMIT);
  small.set_unfinished_evaluations_max(1);
  Create(small);
  Start(true);
  EXPECT_THAT(access_->AddUnfinished("tokens/small", {"evaluations/1"}),
              HasReason("QUOTA_EXCEEDED"));
  access_->RemoveUnfinished("tokens/small", "evaluations/waiting");
  EXPECT_OK(access_->AddUnfinished("tokens/small", {"evaluations/1"}));
}

TEST_F(AccessControlTest, RecordsActsBeforeTheirAnswerAndRefusalsWithoutWaiting) {
  Start(true);
  const std::string admin = Create(MakeToken("a", v1::Token::ADMIN));
  const std::string read = Create(MakeToken("r", v1::Token::READ));
  const std::string nasty = "workers/\x1b[2J\n'; DROP TABLE tokens; --" + std::string(500, 'x');
  const auto act = Begin("DrainWorker", admin, "ipv4:10.0.0.7:1000", false, nasty);
  ASSERT_OK(act->refusal);
  bool answered = false;
  access_->End(*act, absl::StatusCode::kOk,
               [&](const absl::Status& recorded) { answered = recorded.ok(); });
  EXPECT_FALSE(answered);
  store_.RunPending();
  EXPECT_TRUE(answered);
  const auto refused = Begin("DrainWorker", read, "ipv4:10.0.0.8:1", false, "workers/w1");
  answered = false;
  access_->End(*refused, refused->refusal.code(),
               [&](const absl::Status& recorded) { answered = recorded.ok(); });
  EXPECT_TRUE(answered);
  store_.RunPending();
  ASSERT_OK_AND_ASSIGN(const auto listed, store_.ListAccessEvents({}));
  const std::vector<v1::AccessEvent>& events = listed.items;
  ASSERT_EQ(events.size(), 4u);  // and those of the tokens
  EXPECT_EQ(events[0].token(), "tokens/r");
  EXPECT_EQ(events[0].peer(), "ipv4:10.0.0.8:1");
  EXPECT_EQ(events[0].code(), "PERMISSION_DENIED");
  EXPECT_EQ(events[1].token(), "tokens/a");
  EXPECT_LE(events[1].resource().size(), limits::kAccessTextBytesMax);
  for (const char c : events[1].resource()) EXPECT_TRUE(c >= ' ' && c < 0x7f) << int{c};
  for (const v1::AccessEvent& event : events) {
    EXPECT_EQ(event.DebugString().find(admin), std::string::npos);
    EXPECT_EQ(event.DebugString().find(read), std::string::npos);
  }
  // Reading is no act, and done within one's scope it leaves no trace.
  EXPECT_OK(Call("GetProblem", read));
  EXPECT_EQ(Events().size(), 4u);
  // What is not in the log is not acknowledged.
  store_.FailNextWrite(absl::ResourceExhaustedError("disk full"));
  const auto lost = Begin("DrainWorker", admin);
  absl::Status told;
  access_->End(*lost, absl::StatusCode::kOk,
               [&](const absl::Status& recorded) { told = recorded; });
  store_.RunPending();
  EXPECT_THAT(told, HasReason("ACCESS_UNRECORDED"));
  EXPECT_THAT(std::string(told.message()), HasSubstr("DrainWorker"));
  EXPECT_EQ(access_->Counters().unrecorded_total, 1);
}

TEST_F(AccessControlTest, ANetworkOfIpv6AddressesIsOneCaller) {
  Start(true);
  absl::Status last;
  for (int i = 0; i <= limits::kRefusedCallsBurst; ++i) {
    last = Call("GetProblem", "wrong",
                absl::StrCat("ipv6:%5B2001:db8:1:2::", i + 1, "%5D:", 1000 + i));
  }
  EXPECT_THAT(last, HasReason("RATE_LIMITED"));
  EXPECT_THAT(Call("GetProblem", "wrong", "ipv6:[2001:db8:1:3::1]:7"), HasReason("TOKEN_INVALID"));
  EXPECT_THAT(Call("GetProblem", "wrong", "ipv6:[fe80::1%25eth0]:7"), HasReason("TOKEN_INVALID"));
}

TEST_F(AccessControlTest, StreamsAndStoredBytesOfATokenAreBounded) {
  Start(true);
  const std::string read = Create(MakeToken("r", v1::Token::READ));
  const std::string other = Create(MakeToken("o", v1::Token::READ));
  const auto call = Begin("WatchEvaluation", read);
  for (size_t i = 0; i < limits::kTokenWatchersMax; ++i) ASSERT_OK(access_->AddStream(*call));
  EXPECT_THAT(access_->AddStream(*call), HasReason("TOO_MANY_WATCHERS"));
  EXPECT_OK(access_->AddStream(*Begin("WatchEvaluation", other)));
  access_->RemoveStream(*call);
  EXPECT_OK(access_->AddStream(*call));

  constexpr size_t kPart = limits::kTokenCandidateBytesBurst / 4;
  for (int i = 0; i < 4; ++i) ASSERT_OK(access_->AddCandidateBytes("tokens/r", kPart));
  EXPECT_THAT(access_->AddCandidateBytes("tokens/r", kPart), HasReason("QUOTA_EXCEEDED"));
  EXPECT_OK(access_->AddCandidateBytes("tokens/o", kPart));
  EXPECT_OK(access_->AddCandidateBytes("", kPart));
  clock_.Advance(absl::Seconds(kPart / limits::kTokenCandidateBytesPerSecond));
  EXPECT_OK(access_->AddCandidateBytes("tokens/r", kPart));
}

TEST_F(AccessControlTest, RefusalsThatWaitForTheDiskAreBounded) {
  Start(true);
  const std::string read = Create(MakeToken("r", v1::Token::READ));
  constexpr int kCalls = static_cast<int>(limits::kAccessRecordsWaiting) + 10;
  for (int i = 0; i < kCalls; ++i) {
    const auto call = Begin("DrainWorker", read);
    access_->End(*call, call->refusal.code(), [](const absl::Status&) {});
  }
  EXPECT_EQ(store_.pending_count(), limits::kAccessRecordsWaiting);
  EXPECT_EQ(access_->Counters().unrecorded_total, 10);
  store_.RunPending();
  EXPECT_THAT(Call("DrainWorker", read), HasReason("SCOPE_MISSING"));
  EXPECT_EQ(access_->Counters().unrecorded_total, 10);
}

}  // namespace
}  // namespace assay
