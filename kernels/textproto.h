// Strict reading of text-format protos with errors that name file, line and column. Internal to
// kernels.
#ifndef ASSAY_KERNELS_TEXTPROTO_H_
#define ASSAY_KERNELS_TEXTPROTO_H_

#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace assay {

// Where the text stands in its file; both count from 1.
struct TextPosition {
  int line = 1;
  int column = 1;
};

// Parses `text` into `message`. INVALID_ARGUMENT "file:line:column: what" for the first error; the
// reason is UNKNOWN_FIELD for a field that the message does not have, else `reason`.
absl::Status ParseTextProto(std::string_view text, std::string_view file, TextPosition start,
                            std::string_view reason, google::protobuf::Message* message);

}  // namespace assay

#endif  // ASSAY_KERNELS_TEXTPROTO_H_
