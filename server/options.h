// The command line of assay-server.
#ifndef ASSAY_SERVER_OPTIONS_H_
#define ASSAY_SERVER_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

class Clock;

struct ServerOptions {
  std::string data_directory;
  std::string listen = "127.0.0.1:7400";  // port 0: any free one
  std::string metrics_listen;             // empty: no metrics
  std::string publish_path;               // empty: no published copy
  int publish_interval_seconds = 30;
  std::string problems_directory;  // empty: only what is stored
  std::string tls_cert_path;       // empty: no TLS; set together with tls_key_path
  std::string tls_key_path;
  std::string client_ca_path;  // empty: workers need no certificates; only with TLS
  bool require_tokens = false;
  bool insecure_listen = false;
  std::string create_admin_token;  // not empty: create this one, print its secret, end
  bool help = false;
  Clock* clock = nullptr;  // for tests; null: the machine's
};

// `arguments` without the program's name; "--name value" and "--name=value". INVALID_ARGUMENT names
// what is wrong.
absl::StatusOr<ServerOptions> ParseServerOptions(const std::vector<std::string>& arguments);

// For --help.
std::string_view ServerUsage();

}  // namespace assay

#endif  // ASSAY_SERVER_OPTIONS_H_
