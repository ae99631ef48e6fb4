#include "client/cli/arguments.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

bool Contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

absl::Status UnknownFlag(std::string_view name, const FlagSet& flags) {
  std::vector<std::string> known = flags.valued;
  known.insert(known.end(), flags.switches.begin(), flags.switches.end());
  std::sort(known.begin(), known.end());
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag --", Av(name), "; known: --", absl::StrJoin(known, ", --")));
}

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(const std::vector<std::string>& words,
                                           const FlagSet& flags) {
  Arguments out;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      out.positional_.insert(out.positional_.end(), words.begin() + i + 1, words.end());
      break;
    }
    if (word.size() < 3 || word.compare(0, 2, "--") != 0) {
      out.positional_.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (Contains(flags.switches, name)) {
      if (equals != std::string::npos) {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " takes no value"));
      }
      out.values_.emplace(name, "");
    } else if (Contains(flags.valued, name)) {
      if (equals != std::string::npos) {
        out.values_.emplace(name, word.substr(equals + 1));
      } else if (i + 1 < words.size()) {
        out.values_.emplace(name, words[++i]);
      } else {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
    } else {
      return UnknownFlag(name, flags);
    }
  }
  return out;
}

bool Arguments::Has(std::string_view flag) const { return values_.find(flag) != values_.end(); }

std::string Arguments::Get(std::string_view flag, std::string_view fallback) const {
  const auto [first, last] = values_.equal_range(flag);
  return first == last ? std::string(fallback) : std::prev(last)->second;
}

std::vector<std::string> Arguments::GetAll(std::string_view flag) const {
  std::vector<std::string> out;
  const auto [first, last] = values_.equal_range(flag);
  for (auto it = first; it != last; ++it) out.push_back(it->second);
  return out;
}

absl::StatusOr<int64_t> Arguments::GetInt(std::string_view flag, int64_t fallback, int64_t low,
                                          int64_t high) const {
  if (!Has(flag)) return fallback;
  const std::string text = Get(flag);
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return absl::InvalidArgumentError(absl::StrCat("--", Av(flag), " must be an integer from ", low,
                                                   " to ", high, ", not '", text, "'"));
  }
  return value;
}

}  // namespace assay
