// Words of PTX text, for scans that need no parser.
#ifndef ASSAY_WORKER_BACKEND_CUDA_PTX_WORDS_H_
#define ASSAY_WORKER_BACKEND_CUDA_PTX_WORDS_H_

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace assay {

// Names with dots and dollar signs, numbers, quoted strings, and single other characters. Comments
// are skipped. The text outlives it; a copy looks ahead.
class PtxWords {
 public:
  explicit PtxWords(std::string_view text) : text_(text) {}

  // Empty at the end.
  std::string_view Next() {
    SkipBlanks();
    if (at_ >= text_.size()) return {};
    start_ = at_++;
    if (text_[start_] == '"') {
      // To ptxas a backslash is a character like any other.
      at_ = std::min(text_.size(), text_.find('"', at_));
      at_ = std::min(text_.size(), at_ + 1);
    } else if (IsWord(text_[start_])) {
      // Directives need no blank between them: .global.u32 are two. Operations are one.
      const bool directive = text_[start_] == '.';
      while (at_ < text_.size() && IsWord(text_[at_]) && !(directive && text_[at_] == '.')) ++at_;
    }
    return text_.substr(start_, at_ - start_);
  }

  // Where the last word begins.
  size_t start() const { return start_; }

 private:
  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
           c == '.';
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.size(), text_.find('\n', at_));
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t start_ = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_PTX_WORDS_H_
