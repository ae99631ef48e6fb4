// Text that breaks what it is put into when that does not escape it: SQL, shells, paths, terminals,
// logs, markup. For tests of each such place. Valid UTF-8, as every string of the API is. Where a
// line break could make a line of its own, that line starts with Forged.
#ifndef ASSAY_BASE_NASTY_TEXT_H_
#define ASSAY_BASE_NASTY_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr std::string_view kForged = "Forged";

inline std::vector<std::string> NastyTexts() {
  return {
      "'; DROP TABLE evaluations; --",
      "\" OR \"1\"=\"1",
      "$(touch /tmp/x) `id` ; reboot & | cat",
      "../../etc/passwd",
      "-rf --help",
      "a\nForged line",
      "a\r\nForged: header",
      "\x1b[2J\x1b[31mred",
      "\x1b]0;title\x07\x08\x7f",
      "\xc2\x9b"
      "31m a C1 control",
      "\xe2\x80\xae"
      "turned",
      "<script>alert(1)</script>&amp;",
      "| a | b |\nForged | row |",
      "```\nForged [link](javascript:x)",
      "`` ` ``",
      "\\",
      "a\\\"b",
      "value\" } 1\nForged{x=\"y\"} 1",
      "a=b level=error event=Forged",
      "%s%n%x",
      "{{7*7}} ${7*7}",
      "]]> <!-- -->",
      " ",
      std::string(5000, 'x'),
  };
}

}  // namespace assay

#endif  // ASSAY_BASE_NASTY_TEXT_H_
