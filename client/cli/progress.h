// What a command that waits shows meanwhile.
#ifndef ASSAY_CLIENT_CLI_PROGRESS_H_
#define ASSAY_CLIENT_CLI_PROGRESS_H_

#include <unistd.h>

#include <iostream>
#include <string>

namespace assay {

// A line on stderr that is rewritten on a terminal, and nothing elsewhere. Not thread-safe.
class Progress {
 public:
  explicit Progress(std::ostream& out = std::cerr, bool enabled = isatty(STDERR_FILENO) != 0)
      : out_(out), enabled_(enabled) {}
  ~Progress() { Clear(); }
  void Show(const std::string& text) {
    if (!enabled_ || text == last_) return;
    out_ << "\r\x1b[K" << text << std::flush;
    last_ = text;
  }
  void Clear() {
    if (!last_.empty()) out_ << "\r\x1b[K" << std::flush;
    last_.clear();
  }

 private:
  std::ostream& out_;
  const bool enabled_;
  std::string last_;
};

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_PROGRESS_H_
