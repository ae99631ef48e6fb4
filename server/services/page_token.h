// Page sizes and page tokens of the List methods. A token is opaque to clients, and bound to the
// list (method and filter) that it continues: it carries a digest over both. It is no secret: it
// guards against mistakes, not against a client that reads its own data in another order.
#ifndef ASSAY_SERVER_SERVICES_PAGE_TOKEN_H_
#define ASSAY_SERVER_SERVICES_PAGE_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "store/store.h"

namespace assay {

// `list` names the method and everything that selects its rows. "" for an empty `after`.
std::string EncodePageToken(std::string_view list, std::string_view after);

// Size 0: kPageSizeDefault; above kPageSizeMax: kPageSizeMax. INVALID_ARGUMENT with reason
// PAGE_SIZE_INVALID for a negative size, PAGE_TOKEN_INVALID for a token that EncodePageToken did
// not make for this `list`.
absl::StatusOr<Page> MakePage(std::string_view list, int page_size, std::string_view page_token);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_PAGE_TOKEN_H_
