// Command-line arguments: "--flag value", "--flag=value", "--switch", and positional words. Flags
// may stand anywhere.
#ifndef ASSAY_CLIENT_CLI_ARGUMENTS_H_
#define ASSAY_CLIENT_CLI_ARGUMENTS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// The flags that a command takes.
struct FlagSet {
  std::vector<std::string> valued;    // take one value; may be repeated
  std::vector<std::string> switches;  // take none
};

class Arguments {
 public:
  // INVALID_ARGUMENT for an unknown flag (naming the known ones), a missing value, or a value given
  // to a switch. "--" ends the flags.
  static absl::StatusOr<Arguments> Parse(const std::vector<std::string>& words,
                                         const FlagSet& flags);

  const std::vector<std::string>& positional() const { return positional_; }
  bool Has(std::string_view flag) const;
  // The last value, or `fallback`.
  std::string Get(std::string_view flag, std::string_view fallback = "") const;
  std::vector<std::string> GetAll(std::string_view flag) const;
  // INVALID_ARGUMENT when the value is not an integer in [low, high].
  absl::StatusOr<int64_t> GetInt(std::string_view flag, int64_t fallback, int64_t low,
                                 int64_t high) const;

 private:
  std::vector<std::string> positional_;
  std::multimap<std::string, std::string, std::less<>> values_;
};

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_ARGUMENTS_H_
