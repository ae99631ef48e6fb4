#include "server/services/page_token.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr size_t kBindingDigits = 16;
constexpr size_t kTokenBytesMax = 1024;

std::string Binding(std::string_view list, std::string_view after) {
  return DigestBuilder().Add("page-v1").Add(list).Add(after).Finish().substr(0, kBindingDigits);
}

}  // namespace

std::string EncodePageToken(std::string_view list, std::string_view after) {
  if (after.empty()) return "";
  std::string token;
  absl::WebSafeBase64Escape(absl::StrCat(Binding(list, after), Av(after)), &token);
  return token;
}

absl::StatusOr<Page> MakePage(std::string_view list, int page_size, std::string_view page_token) {
  Page page;
  if (page_size < 0) {
    return ErrorWithReason(
        absl::StatusCode::kInvalidArgument, "PAGE_SIZE_INVALID",
        absl::StrCat("page_size is ", page_size, "; use 0 for the default of ",
                     limits::kPageSizeDefault, " or up to ", limits::kPageSizeMax));
  }
  page.size = page_size == 0 ? limits::kPageSizeDefault : std::min(page_size, limits::kPageSizeMax);
  if (page_token.empty()) return page;
  std::string raw;
  if (page_token.size() <= kTokenBytesMax && absl::WebSafeBase64Unescape(Av(page_token), &raw) &&
      raw.size() > kBindingDigits) {
    const std::string_view view(raw);
    const std::string_view after = view.substr(kBindingDigits);
    if (view.substr(0, kBindingDigits) == Binding(list, after)) {
      page.after = std::string(after);
      return page;
    }
  }
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "PAGE_TOKEN_INVALID",
                         "page_token does not belong to this list; pass next_page_token of a call "
                         "with the same filter, or start without one");
}

}  // namespace assay
