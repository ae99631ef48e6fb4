#include "absl/strings/str_cat.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/records.h"
#include "store/testing/builders.h"
#include "store/testing/conformance.h"
#include "store/testing/proto_matcher.h"

namespace assay {
namespace {

using ::assay::testing::Await;
using ::assay::testing::EqualsProto;
using ::assay::testing::TestTime;
using ::testing::ElementsAre;

absl::StatusOr<v1::Token> Create(Store& store, const std::string& name) {
  StoredToken token;
  token.token.set_name("tokens/" + name);
  token.token.add_scopes(v1::Token::SUBMIT);
  token.token.set_requests_per_second(7);
  token.digest = "digest of " + name;
  NewAccessEvent event;
  event.event.set_resource("made " + name);
  return Await<v1::Token>([&](auto done) { store.CreateToken(token, event, std::move(done)); });
}

absl::StatusOr<v1::Token> Revoke(Store& store, const std::string& name, double seconds) {
  return Await<v1::Token>(
      [&](auto done) { store.RevokeToken("tokens/" + name, TestTime(seconds), std::move(done)); });
}

}  // namespace

TEST_P(StoreConformanceTest, TokensAreKeptWithTheDigestsOfTheirSecrets) {
  ASSERT_OK(Create(store(), "b"));
  ASSERT_OK_AND_ASSIGN(const v1::Token a, Create(store(), "a"));
  EXPECT_THAT(Create(store(), "a"), HasReason("TOKEN_EXISTS"));
  EXPECT_THAT(Revoke(store(), "none", 1), HasReason("TOKEN_NOT_FOUND"));
  ASSERT_OK_AND_ASSIGN(const v1::Token revoked, Revoke(store(), "b", 1));
  EXPECT_THAT(revoked.revoke_time(), EqualsProto(ToTimestamp(TestTime(1))));
  // The first time stays, and the name is taken for ever.
  ASSERT_OK_AND_ASSIGN(const v1::Token again, Revoke(store(), "b", 2));
  EXPECT_THAT(again, EqualsProto(revoked));
  EXPECT_THAT(Create(store(), "b"), HasReason("TOKEN_EXISTS"));
  for (const bool reopened : {false, true}) {
    if (reopened && !fixture_->Reopen()) break;
    ASSERT_OK_AND_ASSIGN(const std::vector<StoredToken> tokens, store().ListTokens());
    ASSERT_EQ(tokens.size(), 2u);
    EXPECT_THAT(tokens[0].token, EqualsProto(a));
    EXPECT_EQ(tokens[0].digest, "digest of a");
    EXPECT_THAT(tokens[1].token, EqualsProto(revoked));
    EXPECT_EQ(tokens[1].digest, "digest of b");
    // Each came with its event, and what was refused with none.
    ASSERT_OK_AND_ASSIGN(const Listed<v1::AccessEvent> events, store().ListAccessEvents({}));
    ASSERT_EQ(events.items.size(), 2u);
    EXPECT_EQ(events.items[0].resource(), "made a");
    EXPECT_EQ(events.items[1].resource(), "made b");
    EXPECT_GT(events.items[0].number(), events.items[1].number());
  }
}

TEST_P(StoreConformanceTest, AccessEventsAreListedNewestFirst) {
  for (int i = 1; i <= 5; ++i) {
    v1::AccessEvent event;
    event.set_method(absl::StrCat("m", i));
    ASSERT_OK_AND_ASSIGN(const v1::AccessEvent recorded, Await<v1::AccessEvent>([&](auto done) {
                           store().RecordAccessEvent({event, i % 2 == 0}, std::move(done));
                         }));
    EXPECT_EQ(recorded.number(), i);
  }
  std::vector<std::string> seen;
  Page page;
  page.size = 2;
  do {
    ASSERT_OK_AND_ASSIGN(const Listed<v1::AccessEvent> listed, store().ListAccessEvents(page));
    for (const v1::AccessEvent& event : listed.items) {
      seen.push_back(absl::StrCat(event.number(), event.method()));
    }
    page.after = listed.next;
  } while (!page.after.empty());
  EXPECT_THAT(seen, ElementsAre("5m5", "4m4", "3m3", "2m2", "1m1"));
  page.after = EncodePageToken(kEvaluationPages, "3");
  EXPECT_THAT(store().ListAccessEvents(page), HasReason("PAGE_TOKEN_INVALID"));
}

}  // namespace assay
