// What the command line prints: tables, times and ratios for people, protobuf JSON for programs.
// Text that comes from candidates is escaped by base/text.h.
#ifndef ASSAY_CLIENT_CLI_OUTPUT_H_
#define ASSAY_CLIENT_CLI_OUTPUT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace assay {

// Colours are used on a terminal only, and not with NO_COLOR.
bool UseColor();
enum class Color { kGreen, kRed, kYellow, kDim, kBold };
std::string Paint(std::string_view text, Color color, bool enabled = UseColor());

// "812 ns", "10.4 us", "3.21 ms", "1.25 s"; "-" for values <= 0.
std::string FormatNanoseconds(double ns);
// "93.1 %"; "-" for values <= 0.
std::string FormatRatio(double ratio);

// Columns padded to their widest cell. The first row is the heading. Cells of `right_aligned`
// columns are set flush right. Cells may hold any text: all but colours is made printable, on one
// line.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows,
                        const std::vector<size_t>& right_aligned = {});

// Protobuf JSON on one line with the proto's field names.
std::string ToJson(const google::protobuf::Message& message);

// {"error": {"code", "reason", "message"}} on one line.
std::string ErrorJson(const absl::Status& status);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_OUTPUT_H_
