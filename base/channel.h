// How a client reaches the server: the address, TLS, a client's certificate, and a token that goes
// with every call. Of the command line and of workers alike.
#ifndef ASSAY_BASE_CHANNEL_H_
#define ASSAY_BASE_CHANNEL_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace assay {

// Paths of files in PEM, and of one that holds a secret; empty: none.
struct ChannelFiles {
  std::string ca = {};  // authorities that may vouch for the server; TLS when it is set
  std::string certificate = {};
  std::string key = {};  // of `certificate`
  std::string token = {};
};

struct Endpoint {
  std::string address = {};  // HOST:PORT
  std::string ca_pem = {};   // empty: no TLS
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::string token = {};  // a secret: neither printed nor logged
};

// Reads the files. `token`, when not empty, is used where no file is named. NOT_FOUND with reason
// PATH_NOT_FOUND; INVALID_ARGUMENT for what holds no secret, for files that need others, and for a
// token that would leave this machine in the clear.
absl::StatusOr<Endpoint> ReadEndpoint(std::string_view address, const ChannelFiles& files,
                                      std::string_view token = "");

// Connects lazily. `arguments` as of grpc::CreateCustomChannel.
std::shared_ptr<grpc::Channel> MakeChannel(const Endpoint& endpoint,
                                           const grpc::ChannelArguments& arguments);

}  // namespace assay

#endif  // ASSAY_BASE_CHANNEL_H_
