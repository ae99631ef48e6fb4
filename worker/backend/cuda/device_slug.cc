#include "worker/backend/cuda/device_slug.h"

#include "absl/strings/ascii.h"

namespace assay {

std::string DeviceSlug(std::string_view device_name) {
  std::string slug;
  for (const char c : device_name) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte)) {
      slug += absl::ascii_tolower(byte);
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  if (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "unknown" : slug;
}

}  // namespace assay
