#include "server/access/secret.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr std::string_view kPrefix = "assay_";
constexpr size_t kSecretBytes = 32;
constexpr std::string_view kScheme = "Bearer ";

}  // namespace

std::string NewSecret() {
  const std::string bytes = absl::HexStringToBytes(SecureRandomHex(kSecretBytes));
  return absl::StrCat(Av(kPrefix), absl::WebSafeBase64Escape(bytes));
}

std::string SecretDigest(std::string_view secret) { return Sha256Hex(secret); }

std::string_view BearerSecret(std::string_view authorization) {
  if (authorization.size() > limits::kTokenBytesMax ||
      !absl::StartsWithIgnoreCase(Av(authorization), Av(kScheme))) {
    return {};
  }
  return authorization.substr(kScheme.size());
}

}  // namespace assay
