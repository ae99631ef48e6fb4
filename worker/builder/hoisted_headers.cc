#include "worker/builder/hoisted_headers.h"

#include <algorithm>

#include "base/limits.h"
#include "worker/builder/compile_options.h"

namespace assay {
namespace {

// Skips blanks, ends of lines and comments. False when the text ends in a comment.
bool SkipBlanks(std::string_view* text) {
  for (;;) {
    const size_t next = text->find_first_not_of(" \t\r\n");
    text->remove_prefix(std::min(next, text->size()));
    if (text->starts_with("//")) {
      text->remove_prefix(std::min(text->find('\n'), text->size()));
    } else if (text->starts_with("/*")) {
      const size_t end = text->find("*/", 2);
      if (end == text->npos) return false;
      text->remove_prefix(end + 2);
    } else {
      return true;
    }
  }
}

// Takes `#include <name>` or `#include "name"` and the end of its line.
bool TakeInclude(std::string_view* text, std::string* name, bool* quoted) {
  constexpr std::string_view kInclude = "include";
  std::string_view line = text->substr(0, text->find('\n'));
  // A joined line is not worth reading.
  if (!line.starts_with('#') || line.find('\\') != line.npos) return false;
  const size_t line_bytes = line.size();
  line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(kInclude)) return false;
  line.remove_prefix(kInclude.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with('<') && !line.starts_with('"')) return false;
  *quoted = line[0] == '"';
  const size_t close = line.find(*quoted ? '"' : '>', 1);
  if (close == line.npos) return false;
  *name = std::string(line.substr(1, close - 1));
  line.remove_prefix(close + 1);
  const size_t rest = line.find_first_not_of(" \t\r");
  if (rest != line.npos && line.substr(rest, 2) != "//") return false;
  text->remove_prefix(line_bytes);
  return IsSourcePathAllowed(*name);
}

}  // namespace

std::vector<std::string> HoistedHeaders(
    std::string_view source, const std::function<bool(const std::string&)>& is_toolkit,
    const std::function<bool(const std::string&)>& is_candidate) {
  std::vector<std::string> headers;
  std::string name;
  bool quoted = false;
  while (headers.size() < limits::kHoistedHeadersMax && SkipBlanks(&source) &&
         TakeInclude(&source, &name, &quoted)) {
    // Its own header may define macros that later ones look at.
    if (is_candidate(name)) break;
    if (!is_toolkit(name)) {
      if (quoted) break;
      continue;
    }
    if (std::find(headers.begin(), headers.end(), name) == headers.end()) headers.push_back(name);
  }
  return headers;
}

}  // namespace assay
