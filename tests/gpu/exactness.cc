#include "tests/gpu/exactness.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/strings.h"
#include "worker/backend/cuda/ptx_words.h"

namespace assay {
namespace {

// "add", "rn", "f32" of "add.rn.f32".
std::vector<absl::string_view> Parts(std::string_view word) {
  return absl::StrSplit(Av(word), '.');
}

bool HasPart(const std::vector<absl::string_view>& parts, absl::string_view wanted) {
  return std::find(parts.begin() + 1, parts.end(), wanted) != parts.end();
}

bool IsFloating(const std::vector<absl::string_view>& parts) {
  static constexpr absl::string_view kTypes[] = {"f16", "f16x2", "bf16", "bf16x2",
                                                 "f32", "f32x2", "f64"};
  return std::find(std::begin(kTypes), std::end(kTypes), parts.back()) != std::end(kTypes);
}

bool HasRounding(const std::vector<absl::string_view>& parts) {
  for (const absl::string_view mode : {"rn", "rz", "rm", "rp"}) {
    if (HasPart(parts, mode)) return true;
  }
  return false;
}

// Tensor operations on integers are exact.
bool IsInexactTensorOperation(const std::vector<absl::string_view>& parts) {
  const bool tensor = parts[0] == "mma" || parts[0] == "wgmma" || parts[0] == "tcgen05" ||
                      (parts[0] == "wmma" && HasPart(parts, "mma"));
  return tensor && !HasPart(parts, "s32");
}

}  // namespace

std::string WhyBitsMayDiffer(std::string_view ptx) {
  std::string_view product;
  std::string_view sum;
  PtxWords words(ptx);
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    if (word.front() == '"') continue;
    if (word.starts_with("%clock") || word.starts_with("%globaltimer")) return std::string(word);
    const std::vector<absl::string_view> parts = Parts(word);
    if (parts.size() < 2 || parts[0].empty()) continue;
    const absl::string_view operation = parts[0];
    if (HasPart(parts, "approx") || (operation == "div" && HasPart(parts, "full")) ||
        operation == "atom" || operation == "red" || IsInexactTensorOperation(parts)) {
      return std::string(word);
    }
    // Without a rounding mode, a driver may fuse a product with a sum, or not.
    if (!IsFloating(parts) || HasRounding(parts)) continue;
    if (operation == "mul") product = word;
    if (operation == "add" || operation == "sub") sum = word;
  }
  if (product.empty() || sum.empty()) return "";
  return absl::StrCat(Av(product), " and ", Av(sum), " may be fused");
}

}  // namespace assay
