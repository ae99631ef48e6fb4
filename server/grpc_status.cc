#include "server/grpc_status.h"

#include <grpcpp/support/status.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

// Three copies of the message travel in the trailing metadata, which gRPC bounds (8 KiB): one
// percent-encoded, at most three bytes a character, and two in the details, in base64.
constexpr size_t kMessageBytesMax = 1024;
constexpr std::string_view kCut = "...";

// At most kMessageBytesMax bytes of ASCII. Anything else is escaped: the details hold proto3
// strings, which clients refuse to parse when a character is cut in two or was never UTF-8.
std::string SafeMessage(std::string_view message) {
  std::string out;
  for (const char c : message) {
    const bool plain = c == '\n' || (c >= ' ' && c < 0x7f);
    const auto byte = static_cast<unsigned char>(c);
    const std::string text =
        plain ? std::string(1, c) : absl::StrCat("\\x", absl::Hex(byte, absl::kZeroPad2));
    if (out.size() + text.size() + kCut.size() > kMessageBytesMax) {
      return absl::StrCat(out, Av(kCut));
    }
    out += text;
  }
  return out;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = SafeMessage(Sv(status.message()));
  v1::ErrorDetail detail;
  detail.set_code(absl::StatusCodeToString(status.code()));
  detail.set_reason(GetReason(status));
  detail.set_message(message);
  internal::v1::RpcStatus details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  details.add_details()->PackFrom(detail);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      details.SerializeAsString());
}

}  // namespace assay
