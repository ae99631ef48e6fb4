#include "kernels/textproto.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/text.h"

namespace assay {
namespace {

// Keeps the first error. Newer protobuf releases call it by another name and argument type.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
#if GOOGLE_PROTOBUF_VERSION >= 4022000
  void RecordError(int line, int column, absl::string_view message) override {
    Keep(line, column, Sv(message));
  }
#else
  void AddError(int line, int column, const std::string& message) override {
    Keep(line, column, message);
  }
#endif

  bool any = false;
  int line = 0;    // from 0; -1: the whole text
  int column = 0;  // from 0
  std::string message;

 private:
  void Keep(int error_line, int error_column, std::string_view text) {
    if (any) return;
    any = true;
    line = error_line;
    column = error_column;
    message = std::string(text.substr(0, 512));
  }
};

}  // namespace

absl::Status ParseTextProto(std::string_view text, std::string_view file, TextPosition start,
                            std::string_view reason, google::protobuf::Message* message) {
  const size_t bad = FindBadUtf8(text);
  if (bad != std::string_view::npos) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, reason,
                           absl::StrCat(Av(file), ":", start.line + LineOf(text, bad) - 1,
                                        ": the text is not UTF-8 without NUL; save it as UTF-8"));
  }
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&input, message)) return absl::OkStatus();

  const int line = errors.line < 0 ? 0 : errors.line;
  const int column = (errors.column < 0 ? 0 : errors.column) + (line == 0 ? start.column : 1);
  const bool unknown = errors.message.find("has no field named") != std::string::npos;
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, unknown ? "UNKNOWN_FIELD" : reason,
                         absl::StrCat(Av(file), ":", start.line + line, ":", column, ": ",
                                      errors.any ? errors.message : "the text does not parse"));
}

}  // namespace assay
