#include "server/access/listen_credentials.h"

#include <grpcpp/security/server_credentials.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

using UniqueBio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using UniqueX509 = std::unique_ptr<X509, decltype(&X509_free)>;
using UniqueKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::Status TlsInvalid(const std::string& what) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "TLS_INVALID", what);
}

absl::StatusOr<std::string> ReadPem(const std::string& flag, const std::string& path) {
  auto text = ReadFile(path, limits::kPemBytesMax);
  if (text.ok()) return text;
  const absl::Status status = Annotate(text.status(), flag);
  return absl::IsNotFound(status)
             ? ErrorWithReason(status.code(), "PATH_NOT_FOUND", Sv(status.message()))
             : status;
}

UniqueX509 ParseCertificate(const std::string& pem) {
  const UniqueBio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  return UniqueX509(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
}

// A key with a pass phrase would ask for it on the terminal.
int NoPassPhrase(char*, int, int, void*) { return -1; }

absl::Status CheckPair(const ServerOptions& options, const std::string& certificate_pem,
                       const std::string& key_pem) {
  const UniqueX509 certificate = ParseCertificate(certificate_pem);
  if (certificate == nullptr) {
    return TlsInvalid(absl::StrCat("--tls-cert: ", options.tls_cert_path,
                                   " holds no certificate in PEM; name the server's, followed by "
                                   "those between it and the authority"));
  }
  const UniqueBio bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())), BIO_free);
  const UniqueKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassPhrase, nullptr),
                      EVP_PKEY_free);
  if (key == nullptr) {
    return TlsInvalid(absl::StrCat("--tls-key: ", options.tls_key_path,
                                   " holds no private key in PEM without a pass phrase"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return TlsInvalid(absl::StrCat("--tls-key: ", options.tls_key_path,
                                   " is not the key of the certificate in ",
                                   options.tls_cert_path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckListen(const ServerOptions& options) {
  if (IsLoopback(options.listen) || !options.tls_cert_path.empty() || options.insecure_listen) {
    return absl::OkStatus();
  }
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "INSECURE_LISTEN",
      absl::StrCat("--listen ", options.listen,
                   " is not loopback, and without TLS tokens and results would cross the network "
                   "in the clear; give --tls-cert and --tls-key, or --insecure-listen when a proxy "
                   "before it speaks TLS"));
}

bool AreTokensRequired(const ServerOptions& options) {
  // A proxy that is let in on loopback brings the world along.
  return options.require_tokens || options.insecure_listen || !IsLoopback(options.listen);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeListenCredentials(
    const ServerOptions& options) {
  if (options.tls_cert_path.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls(options.client_ca_path.empty()
                                            ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                            : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  if (!options.client_ca_path.empty()) {
    ASSAY_ASSIGN_OR_RETURN(tls.pem_root_certs, ReadPem("--client-ca", options.client_ca_path));
    if (ParseCertificate(tls.pem_root_certs) == nullptr) {
      return TlsInvalid(
          absl::StrCat("--client-ca: ", options.client_ca_path, " holds no certificate in PEM"));
    }
  }
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  ASSAY_ASSIGN_OR_RETURN(pair.cert_chain, ReadPem("--tls-cert", options.tls_cert_path));
  ASSAY_ASSIGN_OR_RETURN(pair.private_key, ReadPem("--tls-key", options.tls_key_path));
  ASSAY_RETURN_IF_ERROR(CheckPair(options, pair.cert_chain, pair.private_key));
  tls.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(tls);
}

}  // namespace assay
