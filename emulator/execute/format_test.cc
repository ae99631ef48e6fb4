#include "emulator/execute/format.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/text.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

// A packed argument buffer.
class Arguments {
 public:
  template <typename T>
  Arguments& Add(T value) {
    bytes_.resize((bytes_.size() + sizeof value - 1) / sizeof value * sizeof value);
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
    return *this;
  }
  Arguments& Int(int32_t value) { return Add(value); }
  Arguments& Long(int64_t value) { return Add(value); }
  Arguments& Double(double value) { return Add(value); }
  Arguments& String(uint64_t address) { return Add(address); }

  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// Address 0x100 holds "warp", 0x200 a very long text, no other one anything.
std::string Format(std::string_view format, const Arguments& arguments) {
  const std::vector<uint8_t>& bytes = arguments.bytes();
  return FormatPrintf(
      format,
      [&](uint64_t offset, void* out, size_t size) {
        if (offset > bytes.size() || size > bytes.size() - offset) return false;
        std::memcpy(out, bytes.data() + offset, size);
        return true;
      },
      [](uint64_t address) -> absl::StatusOr<std::string> {
        if (address == 0x100) return "warp";
        if (address == 0x200) return std::string(100'000, 'y');
        return absl::OutOfRangeError(absl::StrCat("no text at 0x", absl::Hex(address)));
      });
}

struct Case {
  const char* format;
  Arguments arguments;
  const char* expected;
};

TEST(FormatTest, ConvertsAsC) {
  const Case cases[] = {
      {"plain", {}, "plain"},
      {"", {}, ""},
      {"100%%", {}, "100%"},
      {"%d", Arguments().Int(-7), "-7"},
      {"%i|%u", Arguments().Int(-1).Int(-1), "-1|4294967295"},
      {"%5d|%-5d|%05d|%+d|% d", Arguments().Int(42).Int(42).Int(42).Int(42).Int(42),
       "   42|42   |00042|+42| 42"},
      {"%.3d", Arguments().Int(7), "007"},
      {"%x %X %#x %o", Arguments().Int(255).Int(255).Int(255).Int(8), "ff FF 0xff 10"},
      {"%hhd %hd", Arguments().Int(0x1ff).Int(0x18000), "-1 -32768"},
      {"%hhu %hu", Arguments().Int(0x1ff).Int(0x18000), "255 32768"},
      {"%ld %lld", Arguments().Long(-5'000'000'000).Long(1), "-5000000000 1"},
      {"%zu %llx", Arguments().Long(5'000'000'000).Long(-1), "5000000000 ffffffffffffffff"},
      {"%d %ld %d", Arguments().Int(1).Long(2).Int(3), "1 2 3"},  // 4 bytes of padding
      {"%f %.2f %e %g", Arguments().Double(1.5).Double(2.675).Double(12345.678).Double(1e-10),
       "1.500000 2.67 1.234568e+04 1e-10"},
      {"%8.3f|%-8.1f|%+f", Arguments().Double(3.14159).Double(2.25).Double(0.0),
       "   3.142|2.2     |+0.000000"},
      {"%f %F", Arguments().Double(1.0 / 0.0).Double(-1.0 / 0.0), "inf -INF"},
      {"%a", Arguments().Double(1.0), "0x1p+0"},
      {"%c%c", Arguments().Int('o').Int('k'), "ok"},
      {"[%3c]", Arguments().Int('x'), "[  x]"},
      {"%s", Arguments().String(0x100), "warp"},
      {"[%6s|%-6s|%.2s]", Arguments().String(0x100).String(0x100).String(0x100),
       "[  warp|warp  |wa]"},
      {"%p", Arguments().Long(0x700000001000), "0x700000001000"},
      {"%*d|%-*d|%*d", Arguments().Int(4).Int(7).Int(4).Int(7).Int(-4).Int(7), "   7|7   |7   "},
      {"%.*f|%.*f", Arguments().Int(1).Double(2.5).Int(-1).Double(2.5), "2.5|2.500000"},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(Format(test.format, test.arguments), test.expected) << test.format;
  }
}

TEST(FormatTest, CopiesWhatItDoesNotConvert) {
  const Case cases[] = {
      {"%q", {}, "%q"},
      {"%", {}, "%"},
      {"%-08", {}, "%-08"},
      {"a%n%d", Arguments().Long(0x1000).Int(5), "a%n5"},
      {"%d %d %d", Arguments().Int(1), "1 %d %d"},
      // What comes after a missing argument is not read at another place.
      {"%ld %d", Arguments().Int(1), "%ld %d"},
      {"%*d", {}, "%*d"},
      {"%s", Arguments().String(0x300), "<no text at 0x300>"},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(Format(test.format, test.arguments), test.expected) << test.format;
  }
}

TEST(FormatTest, OutputIsBounded) {
  const std::string wide = Format("%99999999999999999999d|", Arguments().Int(1));
  EXPECT_EQ(wide.size(), static_cast<size_t>(kFormatWidthMax) + 1);
  EXPECT_EQ(Format("%*d", Arguments().Int(INT32_MIN).Int(1)).size(),
            static_cast<size_t>(kFormatWidthMax));
  EXPECT_EQ(Format("%.99999f", Arguments().Double(1e308)).size(),
            309 + 1 + static_cast<size_t>(kFormatWidthMax));

  std::string many;
  Arguments numbers;
  for (int i = 0; i < 100; ++i) {
    many += "%4000d";
    numbers.Int(i);
  }
  for (const std::string& text : {Format(many, numbers), Format(std::string(200'000, 'x'), {}),
                                  Format("%s", Arguments().String(0x200))}) {
    EXPECT_EQ(text.size(), kFormatBytesMax);
    EXPECT_TRUE(text.ends_with(kFormatCut));
  }
  const std::string fits(kFormatBytesMax, 'x');
  EXPECT_EQ(Format(fits, {}), fits);
}

TEST(FormatTest, ZeroBytesAreText) {
  EXPECT_EQ(Format(std::string_view("a\0b", 3), {}), std::string("a\0b", 3));
  EXPECT_EQ(Format("%c", Arguments().Int(0)), std::string(1, '\0'));
}

TEST(FormatTest, SurvivesHostileFormats) {
  constexpr std::string_view kAlphabet = "%%%%dsfxpncl*.-+ #0123456789hzjtLeqg";
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::string format;
    const uint64_t length = random.Below(40);
    for (uint64_t i = 0; i < length; ++i) format += kAlphabet[random.Below(kAlphabet.size())];
    Arguments arguments;
    const uint64_t count = random.Below(8);
    for (uint64_t i = 0; i < count; ++i) arguments.Long(static_cast<int64_t>(random()));
    EXPECT_LE(Format(format, arguments).size(), kFormatBytesMax)
        << "seed " << seed << ": " << PrintableLine(format);
  }
}

}  // namespace
}  // namespace assay::emulator
