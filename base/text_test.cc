#include "base/text.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(TextTest, HostileTextCannotDriveTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\r\n\tc"), "a\\x1b[2Jb\\x0d\n\tc");
  EXPECT_EQ(Printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "x")
                .find("\xe2\x80\xae"),
            std::string::npos);
  EXPECT_EQ(Printable("\xc3"), "\\xc3");
}

TEST(TextTest, AMessageStaysOnItsLine) {
  EXPECT_EQ(PrintableLine("no file a\nb\tc\x1b[31m"), "no file a\\x0ab\\x09c\\x1b[31m");
  EXPECT_EQ(PrintableLine("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(TextTest, Utf8IsWhatProtobufTakes) {
  for (const char* good : {"", "a\x1b\n", "gr\xc3\xbc\xc3\x9f", "\xe2\x80\xae", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\xff", "a\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",
                          "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << Printable(bad);
  }
}

}  // namespace
}  // namespace assay
