#include "base/address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr int kPortMax = 65'535;

bool IsHost(std::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::string_view marks = bracketed ? ":.%" : ".-_";
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           marks.find(c) != std::string_view::npos;
  });
}

bool IsPort(std::string_view text, int port_min) {
  int port = 0;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }) &&
         absl::SimpleAtoi(Av(text), &port) && port >= port_min && port <= kPortMax;
}

absl::Status Check(std::string_view text, int port_min) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && IsHost(text.substr(0, colon)) &&
      IsPort(text.substr(colon + 1), port_min)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("'", Av(text),
                                                 "' is not HOST:PORT with a port from ", port_min,
                                                 " to ", kPortMax, ", such as 127.0.0.1:7400"));
}

}  // namespace

absl::Status CheckAddress(std::string_view text) { return Check(text, 1); }

bool IsLoopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Not "127.example.org".
  return host.substr(0, 4) == "127." && std::all_of(host.begin(), host.end(), [](char c) {
           return c == '.' || absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

absl::Status CheckListenAddress(std::string_view text) { return Check(text, 0); }

}  // namespace assay
