#include "server/options.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

absl::Status SetOption(std::string_view name, const std::string& value, ServerOptions* options) {
  if (name == "publish-interval-seconds") {
    int seconds = 0;
    if (!absl::SimpleAtoi(value, &seconds) || seconds < 1 || seconds > 86'400) {
      return absl::InvalidArgumentError(
          absl::StrCat("--publish-interval-seconds takes 1 to 86400, not '", value, "'"));
    }
    options->publish_interval_seconds = seconds;
    return absl::OkStatus();
  }
  std::string* text = name == "data"                 ? &options->data_directory
                      : name == "listen"             ? &options->listen
                      : name == "metrics-listen"     ? &options->metrics_listen
                      : name == "publish-db"         ? &options->publish_path
                      : name == "problems"           ? &options->problems_directory
                      : name == "tls-cert"           ? &options->tls_cert_path
                      : name == "tls-key"            ? &options->tls_key_path
                      : name == "client-ca"          ? &options->client_ca_path
                      : name == "create-admin-token" ? &options->create_admin_token
                                                     : nullptr;
  if (text == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown flag --", Av(name), "; see --help"));
  }
  if (value.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--", Av(name), " needs a value"));
  }
  if (name == "listen" || name == "metrics-listen") {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckListenAddress(value), absl::StrCat("--", Av(name))));
  }
  *text = value;
  return absl::OkStatus();
}

// Null: `name` takes a value or is unknown.
bool* FindSwitch(std::string_view name, ServerOptions* options) {
  return name == "require-tokens"    ? &options->require_tokens
         : name == "insecure-listen" ? &options->insecure_listen
                                     : nullptr;
}

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.data_directory.empty()) {
    return absl::InvalidArgumentError("--data DIR is needed: the folder that keeps the database");
  }
  if (options.tls_cert_path.empty() != options.tls_key_path.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together");
  }
  if (!options.client_ca_path.empty() && options.tls_cert_path.empty()) {
    return absl::InvalidArgumentError("--client-ca needs --tls-cert and --tls-key");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerOptions> ParseServerOptions(const std::vector<std::string>& arguments) {
  ServerOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (!argument.starts_with("--")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", arguments[i], "'; see --help"));
    }
    if (bool* const option = FindSwitch(argument.substr(2), &options); option != nullptr) {
      *option = true;
      continue;
    }
    const size_t equals = argument.find('=');
    std::string value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    const size_t name_end = equals == std::string_view::npos ? argument.size() : equals;
    const absl::Status set = SetOption(argument.substr(2, name_end - 2), value, &options);
    if (!set.ok()) return set;
  }
  ASSAY_RETURN_IF_ERROR(CheckOptions(options));
  return options;
}

std::string_view ServerUsage() {
  return R"(assay-server --data DIR [flags]
  --data DIR                     folder of the database; created when missing
  --listen HOST:PORT             where to serve gRPC (127.0.0.1:7400); port 0 takes any free one
  --metrics-listen HOST:PORT     where to serve /metrics (off)
  --problems DIR                 load every problem folder in DIR at start
  --publish-db PATH              keep a copy of the database there for readers such as Grafana (off)
  --publish-interval-seconds N   how often to renew it (30)
  --tls-cert FILE, --tls-key FILE  speak TLS with this certificate (and those between it and the
                                 authority) and its key, in PEM
  --client-ca FILE               workers show a certificate that this authority signed, or a token
                                 with the scope WORK
  --require-tokens               clients show tokens; beyond loopback they always do
  --insecure-listen              listen beyond loopback without TLS: behind a proxy that speaks it
  --create-admin-token NAME      print the secret of a new token with the scope ADMIN, and end; while
                                 no server uses the folder
Prints "listening HOST:PORT" on standard output when it is ready. SIGTERM or SIGINT: finishes the
calls in flight and stops. Exit code 2: it could not start, with the reason on standard error.
)";
}

}  // namespace assay
