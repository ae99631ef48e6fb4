#include "base/address.h"

#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, TakesHostAndPort) {
  for (const char* good : {"127.0.0.1:7400", "localhost:1", "judge-1.example_net:080",
                           "[::1]:65535", "[fe80::1%eth0]:9"}) {
    EXPECT_OK(CheckAddress(good)) << good;
    EXPECT_OK(CheckListenAddress(good)) << good;
  }
  for (const char* bad :
       {"", "nope", ":7400", "host:", "host:65536", "host:70000", "host:4294974696", "host:80abc",
        "host:-1", "host:+80", "host: 80", "host:x", "a b:1", "http://host:80", "::1:80", "[]:80",
        "[::1]", "[::1:80", "host:80\n"}) {
    EXPECT_THAT(CheckAddress(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("HOST:PORT with a port from 1 to 65535")))
        << bad;
    EXPECT_THAT(CheckListenAddress(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("from 0 to 65535")))
        << bad;
  }
}

TEST(AddressTest, LoopbackIsWhatSaysSo) {
  for (const char* loopback : {"127.0.0.1:7400", "127.1.2.3:0", "localhost:7400", "[::1]:7400"}) {
    EXPECT_TRUE(IsLoopback(loopback)) << loopback;
  }
  for (const char* other :
       {"0.0.0.0:7400", "[::]:7400", "10.0.0.7:7400", "judge:7400", "1270.0.0.1:1",
        "127.example.org:7400", "localhost.example.org:1", "[::2]:1", "*:1"}) {
    EXPECT_FALSE(IsLoopback(other)) << other;
  }
}

TEST(AddressTest, PortZeroIsForListeningOnly) {
  EXPECT_OK(CheckListenAddress("127.0.0.1:0"));
  EXPECT_THAT(CheckAddress("127.0.0.1:0"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay
