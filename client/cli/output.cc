#include "client/cli/output.h"

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"

namespace assay {
namespace {

// Columns that `text` takes on a terminal: code points outside escape sequences.
size_t Width(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++width;
    }
  }
  return width;
}

// One line, in which nothing but the colours of Paint reaches the terminal: cells hold text of
// candidates, and a line break would make a row of its own.
std::string Cell(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t escape = std::min(text.find("\x1b["), text.size());
    out += PrintableLine(text.substr(0, escape));
    text.remove_prefix(escape);
    if (text.empty()) break;
    const size_t end = text.find_first_not_of("0123456789", 2);
    const bool is_colour = end != std::string_view::npos && end > 2 && text[end] == 'm';
    const size_t length = is_colour ? end + 1 : 2;
    out += is_colour ? std::string(text.substr(0, length)) : PrintableLine(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

bool UseColor() {
  static const bool use = isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  return use;
}

std::string Paint(std::string_view text, Color color, bool enabled) {
  if (!enabled) return std::string(text);
  const char* code = "0";
  switch (color) {
    case Color::kGreen:
      code = "32";
      break;
    case Color::kRed:
      code = "31";
      break;
    case Color::kYellow:
      code = "33";
      break;
    case Color::kDim:
      code = "2";
      break;
    case Color::kBold:
      code = "1";
      break;
  }
  return absl::StrCat("\x1b[", code, "m", Av(text), "\x1b[0m");
}

std::string FormatNanoseconds(double ns) {
  if (!(ns > 0)) return "-";
  struct Unit {
    double factor;
    const char* name;
  };
  for (const Unit unit : {Unit{1e9, "s"}, Unit{1e6, "ms"}, Unit{1e3, "us"}}) {
    if (ns >= unit.factor) return absl::StrFormat("%.3g %s", ns / unit.factor, unit.name);
  }
  return absl::StrFormat("%.3g ns", ns);
}

std::string FormatRatio(double ratio) {
  return ratio > 0 ? absl::StrFormat("%.1f %%", 100 * ratio) : "-";
}

std::string FormatTable(const std::vector<std::vector<std::string>>& texts,
                        const std::vector<size_t>& right_aligned) {
  std::vector<std::vector<std::string>> rows = texts;
  std::vector<size_t> widths;
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), Cell);
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      const bool right =
          std::find(right_aligned.begin(), right_aligned.end(), i) != right_aligned.end();
      absl::StrAppend(&line, i > 0 ? "  " : "", right ? padding : "", row[i], right ? "" : padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string out;
  const auto status = google::protobuf::util::MessageToJsonString(message, &out, options);
  return status.ok() ? out : "{}";
}

std::string ErrorJson(const absl::Status& status) {
  v1::ErrorDetail error;
  error.set_code(absl::StatusCodeToString(status.code()));
  error.set_reason(GetReason(status));
  error.set_message(Printable(Sv(status.message())));
  return absl::StrCat("{\"error\":", ToJson(error), "}");
}

}  // namespace assay
