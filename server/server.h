// The server as one object: wires store, dispatcher, services, metrics and the gRPC port.
#ifndef ASSAY_SERVER_SERVER_H_
#define ASSAY_SERVER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/options.h"

namespace assay {

// Not thread-safe; one owner starts and stops it.
class AssayServer {
 public:
  // Opens and recovers the store, loads the problems, and binds the port last, so that a client
  // that reaches it is served. Blocks. Reasons: DATA_FOLDER_IN_USE, SCHEMA_TOO_NEW, PORT_IN_USE,
  // PATH_NOT_FOUND, INSECURE_LISTEN, TLS_INVALID.
  static absl::StatusOr<std::unique_ptr<AssayServer>> Start(const ServerOptions& options);

  // Shuts down when that was not done.
  ~AssayServer();

  // "HOST:PORT" with the port that was bound.
  const std::string& address() const { return address_; }
  // 0 when metrics are off.
  int metrics_port() const { return metrics_port_; }

  // Refuses new calls, ends watches and long polls, finishes the calls in flight, makes queued
  // writes durable. Blocks. Idempotent.
  void Shutdown();

 private:
  struct Parts;
  explicit AssayServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::string address_;
  int metrics_port_ = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVER_H_
