// HOST:PORT, by one rule for every flag that takes it. What gRPC makes of other texts differs: it
// cuts a port to 16 bits, takes a missing one for 443, and tries a host that cannot be for ever.
#ifndef ASSAY_BASE_ADDRESS_H_
#define ASSAY_BASE_ADDRESS_H_

#include <string_view>

#include "absl/status/status.h"

namespace assay {

// INVALID_ARGUMENT unless `text` is HOST:PORT: a name, an IPv4 address or an IPv6 address in
// brackets, and a port from 1 to 65535.
absl::Status CheckAddress(std::string_view text);

// The same for an address to listen on, where port 0 stands for any free one.
absl::Status CheckListenAddress(std::string_view text);

// Whether HOST:PORT of such a form reaches this machine alone, by what it says: 127.0.0.0/8, [::1]
// and localhost. No name is resolved.
bool IsLoopback(std::string_view address);

}  // namespace assay

#endif  // ASSAY_BASE_ADDRESS_H_
