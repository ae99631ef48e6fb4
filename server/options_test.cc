#include "server/options.h"

#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(ServerOptions, ParsesBothForms) {
  ASSERT_OK_AND_ASSIGN(const ServerOptions options,
                       ParseServerOptions({"--data", "/d", "--listen=127.0.0.1:0", "--publish-db",
                                           "/p/a.db", "--publish-interval-seconds=5", "--problems",
                                           "/q", "--metrics-listen", "127.0.0.1:0"}));
  EXPECT_EQ(options.data_directory, "/d");
  EXPECT_EQ(options.listen, "127.0.0.1:0");
  EXPECT_EQ(options.publish_path, "/p/a.db");
  EXPECT_EQ(options.publish_interval_seconds, 5);
  EXPECT_EQ(options.problems_directory, "/q");
  EXPECT_EQ(options.metrics_listen, "127.0.0.1:0");
  EXPECT_FALSE(options.help);
  EXPECT_FALSE(options.require_tokens);
  EXPECT_FALSE(options.insecure_listen);
}

TEST(ServerOptions, ParsesAccess) {
  ASSERT_OK_AND_ASSIGN(
      const ServerOptions options,
      ParseServerOptions({"--require-tokens", "--data", "/d", "--tls-cert=/c", "--tls-key", "/k",
                          "--insecure-listen", "--client-ca", "/a", "--create-admin-token=root"}));
  EXPECT_TRUE(options.require_tokens);
  EXPECT_TRUE(options.insecure_listen);
  EXPECT_EQ(options.tls_cert_path, "/c");
  EXPECT_EQ(options.tls_key_path, "/k");
  EXPECT_EQ(options.client_ca_path, "/a");
  EXPECT_EQ(options.create_admin_token, "root");
  EXPECT_EQ(options.data_directory, "/d");
}

TEST(ServerOptions, HelpNeedsNothingElse) {
  ASSERT_OK_AND_ASSIGN(const ServerOptions options, ParseServerOptions({"--help"}));
  EXPECT_TRUE(options.help);
}

TEST(ServerOptions, NamesWhatIsWrong) {
  const struct {
    std::vector<std::string> arguments;
    std::string want;
  } cases[] = {
      {{}, "--data"},
      {{"--data"}, "--data needs a value"},
      {{"--data", "/d", "--prot", "1"}, "unknown flag --prot"},
      {{"--data", "/d", "stray"}, "'stray'"},
      {{"--data", "/d", "--listen", "7400"}, "--listen: '7400' is not HOST:PORT"},
      {{"--data", "/d", "--listen=127.0.0.1:70000"}, "with a port from 0 to 65535"},
      {{"--data", "/d", "--listen=127.0.0.1:"}, "HOST:PORT"},
      {{"--data", "/d", "--listen=127.0.0.1:80abc"}, "HOST:PORT"},
      {{"--data", "/d", "--listen=:-1"}, "HOST:PORT"},
      {{"--data", "/d", "--metrics-listen", "127.0.0.1:70000"}, "--metrics-listen: "},
      {{"--data", "/d", "--publish-interval-seconds", "0"}, "1 to 86400"},
      {{"--data", "/d", "--publish-interval-seconds", "x"}, "'x'"},
      {{"--data", "/d", "--tls-cert", "/c"}, "--tls-cert and --tls-key go together"},
      {{"--data", "/d", "--tls-key", "/k"}, "--tls-cert and --tls-key go together"},
      {{"--data", "/d", "--client-ca", "/a"}, "--client-ca needs --tls-cert"},
      {{"--data", "/d", "--require-tokens=no"}, "unknown flag --require-tokens"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseServerOptions(c.arguments),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(c.want)));
  }
}

}  // namespace
}  // namespace assay
