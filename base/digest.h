// Content digests: SHA-256, written as lower-case hexadecimal.
#ifndef ASSAY_BASE_DIGEST_H_
#define ASSAY_BASE_DIGEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace assay {

// 64 hexadecimal characters.
std::string Sha256Hex(std::string_view bytes);

// Digest of a sequence of fields. Every field is framed by its length, so that ("ab","c") and
// ("a","bc") differ.
class DigestBuilder {
 public:
  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder& Add(std::string_view field);
  DigestBuilder& Add(int64_t value);
  // 64 hexadecimal characters. The builder is spent.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay

#endif  // ASSAY_BASE_DIGEST_H_
