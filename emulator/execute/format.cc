#include "emulator/execute/format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::emulator {
namespace {

// One conversion of a format. Widths and precisions are already limited.
struct Conversion {
  bool minus = false;
  bool plus = false;
  bool space = false;
  bool hash = false;
  bool zero = false;
  int width = 0;
  bool width_argument = false;
  int precision = -1;  // -1: none
  bool precision_argument = false;
  int bytes = 4;   // of an integer argument, after promotion
  int narrow = 0;  // bytes that hh and h keep of it; 0: all
  char type = 0;   // 0: the format ends inside
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  // `*used` is the length of the conversion, whose percent sign stands at the start of the text.
  Conversion Parse(size_t* used) {
    Conversion conversion;
    next_ = 1;
    while (TakeFlag(&conversion)) {
    }
    if (Take('*')) {
      conversion.width_argument = true;
    } else {
      conversion.width = TakeNumber();
    }
    if (Take('.')) {
      if (Take('*')) {
        conversion.precision_argument = true;
      } else {
        conversion.precision = TakeNumber();
      }
    }
    TakeLength(&conversion);
    if (next_ < text_.size()) conversion.type = text_[next_++];
    *used = next_;
    return conversion;
  }

 private:
  bool Take(char c) {
    if (next_ >= text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  bool TakeFlag(Conversion* conversion) {
    if (Take('-')) return conversion->minus = true;
    if (Take('+')) return conversion->plus = true;
    if (Take(' ')) return conversion->space = true;
    if (Take('#')) return conversion->hash = true;
    if (Take('0')) return conversion->zero = true;
    return false;
  }
  int TakeNumber() {
    int number = 0;
    while (next_ < text_.size() && IsDigit(text_[next_])) {
      number = std::min(kFormatWidthMax, 10 * number + (text_[next_++] - '0'));
    }
    return number;
  }
  void TakeLength(Conversion* conversion) {
    if (Take('h')) {
      conversion->narrow = Take('h') ? 1 : 2;
    } else if (Take('l') || Take('z') || Take('j') || Take('t')) {
      Take('l');
      conversion->bytes = 8;
    } else {
      Take('L');  // A kernel has no longer type than double.
    }
  }

  std::string_view text_;
  size_t next_ = 0;
};

// The flags and numbers of a conversion as C's printf wants them, for `type` with a length modifier
// before it.
std::string Specification(const Conversion& conversion, const char* length_and_type) {
  std::string text = "%";
  if (conversion.minus) text += '-';
  if (conversion.plus) text += '+';
  if (conversion.space) text += ' ';
  if (conversion.hash) text += '#';
  if (conversion.zero) text += '0';
  if (conversion.width > 0) absl::StrAppend(&text, conversion.width);
  if (conversion.precision >= 0) absl::StrAppend(&text, ".", conversion.precision);
  text += length_and_type;
  return text;
}

template <typename T>
std::string Print(const std::string& specification, T value) {
  // A double has up to 309 digits before the point; the rest is width and precision.
  char buffer[kFormatWidthMax + 512];
  const int length = std::snprintf(buffer, sizeof buffer, specification.c_str(), value);
  if (length < 0) return "";
  return std::string(buffer, std::min<size_t>(static_cast<size_t>(length), sizeof buffer - 1));
}

std::string Pad(const Conversion& conversion, std::string text) {
  const auto width = static_cast<size_t>(conversion.width);
  if (text.size() >= width) return text;
  const std::string blanks(width - text.size(), ' ');
  return conversion.minus ? text + blanks : blanks + text;
}

// Goes through a format once.
class Formatter {
 public:
  Formatter(std::string_view format,
            const std::function<bool(uint64_t, void*, size_t)>& read_argument,
            const std::function<absl::StatusOr<std::string>(uint64_t)>& read_string)
      : format_(format), read_argument_(read_argument), read_string_(read_string) {}

  std::string Run() {
    while (!format_.empty() && out_.size() <= kFormatBytesMax) {
      const size_t percent = format_.find('%');
      out_.append(format_.substr(0, std::min(percent, kFormatBytesMax + 1)));
      if (percent == std::string_view::npos) break;
      format_.remove_prefix(percent);
      Convert();
    }
    if (out_.size() > kFormatBytesMax) {
      out_.resize(kFormatBytesMax - kFormatCut.size());
      out_ += kFormatCut;
    }
    return std::move(out_);
  }

 private:
  void Convert() {
    size_t used = 0;
    Conversion conversion = Parser(format_).Parse(&used);
    const std::string_view written = format_.substr(0, used);
    format_.remove_prefix(used);
    if (conversion.type == '%') {
      out_ += '%';
      return;
    }
    std::string text;
    if (missing_ || !TakeNumbers(&conversion) || !Text(conversion, &text)) {
      out_.append(written);
    } else {
      out_ += text;
    }
  }

  // Width and precision that are arguments.
  bool TakeNumbers(Conversion* conversion) {
    if (conversion->width_argument) {
      int32_t width = 0;
      if (!Take(&width)) return false;
      if (width < 0) conversion->minus = true;
      const int64_t magnitude = width < 0 ? -int64_t{width} : int64_t{width};
      conversion->width = static_cast<int>(std::min<int64_t>(magnitude, kFormatWidthMax));
    }
    if (conversion->precision_argument) {
      int32_t precision = 0;
      if (!Take(&precision)) return false;
      conversion->precision = precision < 0 ? -1 : std::min(precision, kFormatWidthMax);
    }
    return true;
  }

  // False for what is copied as it stands.
  bool Text(const Conversion& conversion, std::string* text) {
    switch (conversion.type) {
      case 'd':
      case 'i':
        return Signed(conversion, text);
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return Unsigned(conversion, text);
      case 'c': {
        uint32_t value = 0;
        if (!Take(&value)) return false;
        *text = Pad(conversion, std::string(1, static_cast<char>(value)));
        return true;
      }
      case 's':
        return String(conversion, text);
      case 'p': {
        uint64_t value = 0;
        if (!Take(&value)) return false;
        *text = Pad(conversion, absl::StrCat("0x", absl::Hex(value)));
        return true;
      }
      case 'n': {
        uint64_t nowhere = 0;
        Take(&nowhere);
        return false;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A': {
        double value = 0;
        if (!Take(&value)) return false;
        const char type[2] = {conversion.type, 0};
        *text = Print(Specification(conversion, type), value);
        return true;
      }
      default:
        return false;
    }
  }

  bool Signed(const Conversion& conversion, std::string* text) {
    int64_t value = 0;
    if (conversion.bytes == 8) {
      if (!Take(&value)) return false;
    } else {
      int32_t narrow = 0;
      if (!Take(&narrow)) return false;
      value = conversion.narrow == 1   ? static_cast<int8_t>(narrow)
              : conversion.narrow == 2 ? static_cast<int16_t>(narrow)
                                       : narrow;
    }
    *text = Print(Specification(conversion, "lld"), static_cast<long long>(value));
    return true;
  }

  bool Unsigned(const Conversion& conversion, std::string* text) {
    uint64_t value = 0;
    if (conversion.bytes == 8) {
      if (!Take(&value)) return false;
    } else {
      uint32_t narrow = 0;
      if (!Take(&narrow)) return false;
      value = conversion.narrow == 1   ? static_cast<uint8_t>(narrow)
              : conversion.narrow == 2 ? static_cast<uint16_t>(narrow)
                                       : narrow;
    }
    const char type[4] = {'l', 'l', conversion.type, 0};
    *text = Print(Specification(conversion, type), static_cast<unsigned long long>(value));
    return true;
  }

  bool String(const Conversion& conversion, std::string* text) {
    uint64_t address = 0;
    if (!Take(&address)) return false;
    absl::StatusOr<std::string> read = read_string_(address);
    if (!read.ok()) {
      *text = absl::StrCat("<", read.status().message(), ">");
      return true;
    }
    if (conversion.precision >= 0 && read->size() > static_cast<size_t>(conversion.precision)) {
      read->resize(static_cast<size_t>(conversion.precision));
    }
    *text = Pad(conversion, *std::move(read));
    return true;
  }

  // The next argument, at a multiple of its size.
  template <typename T>
  bool Take(T* value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    const uint64_t at = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    if (missing_ || !read_argument_(at, value, sizeof(T))) {
      missing_ = true;
      return false;
    }
    offset_ = at + sizeof(T);
    return true;
  }

  std::string_view format_;
  const std::function<bool(uint64_t, void*, size_t)>& read_argument_;
  const std::function<absl::StatusOr<std::string>(uint64_t)>& read_string_;
  std::string out_;
  uint64_t offset_ = 0;
  bool missing_ = false;  // an argument was not there: those after it are not either
};

}  // namespace

std::string FormatPrintf(
    std::string_view format,
    const std::function<bool(uint64_t offset, void* out, size_t bytes)>& read_argument,
    const std::function<absl::StatusOr<std::string>(uint64_t address)>& read_string) {
  return Formatter(format, read_argument, read_string).Run();
}

}  // namespace assay::emulator
