// One-line structured logs on standard error: time level event key=value ...
#ifndef ASSAY_BASE_LOG_H_
#define ASSAY_BASE_LOG_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

using LogField = std::pair<std::string_view, std::string>;

// Thread-safe. Values are escaped and cut at limits::kLogValueBytesMax: they may be hostile.
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// `text` on one printable ASCII line: control and non-ASCII bytes become \xNN; quoted when it holds
// a blank.
std::string LogEscape(std::string_view text);

}  // namespace assay

#endif  // ASSAY_BASE_LOG_H_
