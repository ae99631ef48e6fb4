#include "server/access/secret.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "base/limits.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(SecretTest, SecretsAreLongAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = NewSecret();
    EXPECT_TRUE(absl::StartsWith(secret, "assay_")) << secret;
    EXPECT_EQ(secret.size(), 6u + 43u) << secret;  // 32 bytes in base64 without padding
    EXPECT_EQ(secret.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-_"),
              std::string::npos)
        << secret;
    EXPECT_EQ(SecretDigest(secret).size(), 64u);
    EXPECT_EQ(SecretDigest(secret).find(secret), std::string::npos);
    EXPECT_TRUE(seen.insert(secret).second);
  }
}

TEST(SecretTest, ReadsTheAuthorizationAsItIsSent) {
  const struct {
    std::string authorization;
    std::string want;
  } cases[] = {
      {"Bearer abc", "abc"},
      {"bearer abc", "abc"},
      {"Bearer ", ""},
      {"Bearer", ""},
      {"", ""},
      {"Basic abc", ""},
      {"abc", ""},
      {"Bearer " + std::string(limits::kTokenBytesMax, 'a'), ""},
  };
  for (const auto& c : cases) EXPECT_EQ(BearerSecret(c.authorization), c.want) << c.authorization;
}

}  // namespace
}  // namespace assay
