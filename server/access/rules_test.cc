#include "server/access/rules.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

// "assay.v1.ProblemService/GetProblem" of every service of every .proto there is, so that a new one
// cannot be forgotten.
std::multiset<std::string> DeclaredMethods(const std::string& folder) {
  std::multiset<std::string> methods;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".proto") continue;
    const auto text = ReadFile(entry.path().string(), 1 << 20);
    EXPECT_OK(text);
    std::string package;
    std::string service;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      line = absl::StripLeadingAsciiWhitespace(line);
      const std::vector<std::string> words =
          absl::StrSplit(line, absl::ByAnyChar(" (;"), absl::SkipEmpty());
      if (words.size() < 2) continue;
      if (words[0] == "package") package = words[1];
      if (words[0] == "service") service = words[1];
      if (words[0] == "rpc") methods.insert(absl::StrCat(package, ".", service, "/", words[1]));
    }
  }
  return methods;
}

TEST(AccessRulesTest, EveryMethodOfEveryServiceHasOneRule) {
  const char* const source = std::getenv("ASSAY_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "ASSAY_SOURCE_DIR is not set";
  const std::multiset<std::string> declared = DeclaredMethods(absl::StrCat(source, "/proto/assay"));
  EXPECT_GT(declared.size(), 20u);
  std::multiset<std::string> ruled;
  for (const AccessRule& rule : AccessRules()) {
    ruled.insert(absl::StrCat(rule.service, "/", rule.method));
  }
  EXPECT_EQ(ruled, declared);
}

TEST(AccessRulesTest, AMethodIsFoundByItsNameAlone) {
  for (const AccessRule& rule : AccessRules()) {
    EXPECT_EQ(FindAccessRule(rule.method), &rule) << rule.method << " stands twice";
  }
  EXPECT_EQ(FindAccessRule("Frobnicate"), nullptr);
  EXPECT_EQ(FindAccessRule(""), nullptr);
}

}  // namespace
}  // namespace assay
