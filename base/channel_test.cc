#include "base/channel.h"

#include <string>
#include <vector>

#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPem[] = "-----BEGIN CERTIFICATE-----\n";

class ReadEndpointTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_.path() + "/" + name;
    EXPECT_OK(WriteFileAtomically(path, content));
    return path;
  }
  TemporaryDirectory folder_ = *TemporaryDirectory::Create("channel");
};

TEST_F(ReadEndpointTest, ReadsWhatIsNamed) {
  ASSERT_OK_AND_ASSIGN(const Endpoint plain, ReadEndpoint("127.0.0.1:7400", {}));
  EXPECT_EQ(plain.address, "127.0.0.1:7400");
  EXPECT_EQ(plain.ca_pem + plain.token, "");
  ChannelFiles files;
  files.ca = Write("ca", kPem);
  files.certificate = Write("cert", "own");
  files.key = Write("key", "secret key");
  files.token = Write("token", "assay_abc\n");
  ASSERT_OK_AND_ASSIGN(const Endpoint full, ReadEndpoint("judge:7400", files, "from-elsewhere"));
  EXPECT_EQ(full.ca_pem, kPem);
  EXPECT_EQ(full.certificate_pem, "own");
  EXPECT_EQ(full.key_pem, "secret key");
  EXPECT_EQ(full.token, "assay_abc");
  files.token.clear();
  EXPECT_EQ(ReadEndpoint("judge:7400", files, "from-elsewhere")->token, "from-elsewhere");
}

TEST_F(ReadEndpointTest, SaysWhatIsWrongAndNeverTheSecret) {
  const std::string ca = Write("ca", kPem);
  const std::string secret = "assay_abc";
  const std::string token = Write("token", secret);
  const struct {
    std::string address;
    ChannelFiles files;
    std::string token;
    std::string want;
  } cases[] = {
      {"judge:7400", {.token = token}, "", "in the clear"},
      {"judge:7400", {}, secret, "in the clear"},
      {"judge:7400", {.ca = ca, .certificate = ca}, "", "go together"},
      {"judge:7400", {.ca = ca, .key = ca}, "", "go together"},
      {"judge:7400", {.certificate = ca, .key = ca}, "", "needs --tls-ca"},
      {"judge:7400", {.ca = token}, "", "holds no certificate"},
      {"judge:7400", {.ca = "/nonexistent"}, "", "--tls-ca"},
      {"localhost:7400", {.token = "/nonexistent"}, "", "--token-file"},
      {"localhost:7400", {.token = Write("empty", "\n")}, "", "holds no secret"},
      {"localhost:7400", {.token = Write("two", secret + "\nother\n")}, "", "holds no secret"},
      {"localhost:7400", {}, secret + "\r\nx-other: 1", "ASSAY_TOKEN holds no secret"},
      {"localhost:7400", {}, secret + std::string(1000, 'x'), "ASSAY_TOKEN holds no secret"},
  };
  for (const auto& c : cases) {
    const auto endpoint = ReadEndpoint(c.address, c.files, c.token);
    ASSERT_FALSE(endpoint.ok()) << c.want;
    EXPECT_THAT(std::string(endpoint.status().message()), HasSubstr(c.want));
    EXPECT_THAT(std::string(endpoint.status().message()), Not(HasSubstr(secret)));
  }
}

}  // namespace
}  // namespace assay
