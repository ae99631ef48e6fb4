#include "base/log.h"

#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "base/strings.h"

namespace assay {
namespace {

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

}  // namespace

std::string LogEscape(std::string_view text) {
  const bool cut = text.size() > limits::kLogValueBytesMax;
  if (cut) text = text.substr(0, limits::kLogValueBytesMax);
  std::string escaped = absl::CHexEscape(Av(text));
  if (cut) escaped += "...";
  if (escaped.empty() || escaped.find(' ') != std::string::npos) return "\"" + escaped + "\"";
  return escaped;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), " ",
                   LevelName(level), " ", Av(event));
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, " ", Av(key), "=", LogEscape(value));
  }
  line += '\n';
  // One write per line keeps lines of several threads and processes whole.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace assay
