#include "base/digest.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"

namespace assay {
namespace {

// Fetched once: looking the algorithm up costs as much as digesting a kilobyte.
const EVP_MD* Sha256() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

struct DigestBuilder::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

DigestBuilder::DigestBuilder() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context, Sha256(), nullptr);
}

DigestBuilder::~DigestBuilder() = default;

DigestBuilder& DigestBuilder::Add(std::string_view field) {
  const uint64_t size = field.size();
  unsigned char frame[8];
  for (int i = 0; i < 8; ++i) frame[i] = static_cast<unsigned char>(size >> (8 * i));
  EVP_DigestUpdate(state_->context, frame, sizeof(frame));
  EVP_DigestUpdate(state_->context, field.data(), field.size());
  return *this;
}

DigestBuilder& DigestBuilder::Add(int64_t value) { return Add(std::to_string(value)); }

std::string DigestBuilder::Finish() {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context, out, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(out), size));
}

std::string Sha256Hex(std::string_view bytes) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), out, &size, Sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(out), size));
}

}  // namespace assay
