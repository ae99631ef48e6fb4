// Text of candidates in what the server gives to operators: logs, metrics, statuses.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <string>

#include "assay/v1/evaluation.pb.h"
#include "base/log.h"
#include "base/nasty_text.h"
#include "base/status.h"
#include "base/text.h"
#include "gtest/gtest.h"
#include "server/grpc_status.h"
#include "server/metrics.h"

namespace assay {
namespace {

bool IsOneLineOfAscii(const std::string& text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

TEST(NastyTextTest, InLogs) {
  for (const std::string& text : NastyTexts()) {
    SCOPED_TRACE(PrintableLine(text));
    const std::string value = LogEscape(text);
    EXPECT_TRUE(IsOneLineOfAscii(value)) << value;
    EXPECT_LE(value.size(), 4 * 1024u);
    // A blank would start another key; within quotes it does not, and no quote ends them early.
    if (value.find(' ') == std::string::npos) continue;
    ASSERT_EQ(value.front(), '"');
    ASSERT_EQ(value.back(), '"');
    for (size_t i = 1; i + 1 < value.size(); ++i) {
      if (value[i] == '\\') {
        ++i;
      } else {
        EXPECT_NE(value[i], '"') << value;
      }
    }
  }
}

// Labels of metrics come from closed sets, so that hostile text neither breaks the format nor makes
// series without end.
TEST(NastyTextTest, InMetrics) {
  Metrics untouched("1");
  for (v1::State state : {v1::SUCCEEDED, v1::FAILED, v1::CANCELLED}) {
    Metrics metrics("1");
    for (const std::string& text : NastyTexts()) {
      v1::Evaluation evaluation;
      evaluation.set_state(state);
      evaluation.set_name(text);
      evaluation.set_problem(text);
      evaluation.set_candidate_label(text);
      evaluation.set_device_class(text);
      evaluation.set_worker(text);
      evaluation.set_creator(text);
      evaluation.mutable_outcome()->set_verdict(static_cast<v1::Verdict>(1'000'000));
      evaluation.mutable_outcome()->set_reason(text);
      metrics.CountTransition(evaluation);
    }
    const auto lines = [](const std::string& all) {
      return std::count(all.begin(), all.end(), '\n');
    };
    const std::string text = metrics.Serialize();
    EXPECT_EQ(lines(text), lines(untouched.Serialize())) << text;
    EXPECT_EQ(text.find(kForged), std::string::npos);
  }
}

TEST(NastyTextTest, InStatuses) {
  for (const std::string& text : NastyTexts()) {
    SCOPED_TRACE(PrintableLine(text));
    const grpc::Status status =
        ToGrpcStatus(ErrorWithReason(absl::StatusCode::kInvalidArgument, "NAME_INVALID", text));
    EXPECT_LE(status.error_message().size(), 1024u);
    for (const char c : status.error_message()) {
      EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << int{c};
    }
  }
}

}  // namespace
}  // namespace assay
