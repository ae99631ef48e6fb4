// Secrets of tokens: how they are made, and what is kept of them. Pure but for the randomness;
// thread-safe.
#ifndef ASSAY_SERVER_ACCESS_SECRET_H_
#define ASSAY_SERVER_ACCESS_SECRET_H_

#include <string>
#include <string_view>

namespace assay {

// "assay_" and 32 random bytes in base64url.
std::string NewSecret();

// What is kept: SHA-256 in hexadecimal. 256 random bits need no slow digest, and whoever can
// measure how a lookup of it goes learns nothing of a secret that fits.
std::string SecretDigest(std::string_view secret);

// The secret in "Bearer SECRET" (the value of `authorization`); empty when it is not of that form,
// or too long for a secret.
std::string_view BearerSecret(std::string_view authorization);

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_SECRET_H_
