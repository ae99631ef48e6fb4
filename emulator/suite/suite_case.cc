#include "emulator/suite/suite_case.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "emulator/testing/kernel_fixture.h"

namespace assay::emulator {
namespace {

using Words = std::vector<std::string>;

absl::Status Bad(std::string_view what, const std::string& which) {
  return absl::InvalidArgumentError(
      absl::StrCat(absl::string_view(what.data(), what.size()), ": ", which));
}

absl::StatusOr<uint64_t> Number(const std::string& text) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return Bad("not a number", text);
  return value;
}

// "3", "3,1" or "3,1,2"; what is not given is `rest`.
absl::StatusOr<Dim3> Extents(const std::string& text, uint32_t rest) {
  uint32_t values[3] = {rest, rest, rest};
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() > 3) return Bad("more than three extents", text);
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSAY_ASSIGN_OR_RETURN(const uint64_t value, Number(parts[i]));
    values[i] = static_cast<uint32_t>(value);
  }
  return Dim3{values[0], values[1], values[2]};
}

absl::Status ParseLaunch(const Words& words, SuiteLaunch* launch) {
  LaunchOptions& options = launch->options;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const auto& [key, value] = pair;
    if (key == "grid" || key == "block") {
      ASSAY_ASSIGN_OR_RETURN((key == "grid" ? options.grid : options.block), Extents(value, 1));
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(const uint64_t number, Number(value));
    if (key == "shared") {
      options.dynamic_shared_bytes = static_cast<uint32_t>(number);
    } else if (key == "budget") {
      options.instructions_max = number;
    } else if (key == "output") {
      options.output_bytes_max = number;
    } else if (key == "cooperative") {
      options.cooperative = number != 0;
    } else if (key == "launches") {
      launch->launches = static_cast<int>(number);
    } else {
      return Bad("unknown key of a launch", key);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SuiteParameter> ParseBuffer(const Words& words) {
  if (words.size() < 5)
    return Bad("a buffer has a name, a type, a count and a fill", absl::StrJoin(words, " "));
  SuiteParameter parameter;
  SuiteBuffer& buffer = parameter.buffer.emplace();
  buffer.name = words[1];
  buffer.type = ParseType(words[2]);
  if (buffer.type == Type::kNone) return Bad("unknown type", words[2]);
  ASSAY_ASSIGN_OR_RETURN(buffer.count, Number(words[3]));
  buffer.fill = words[4];
  if (buffer.fill != "iota" && buffer.fill != "zero" && buffer.fill != "empty")
    return Bad("unknown fill", buffer.fill);
  for (size_t i = 5; i < words.size(); ++i) {
    if (words[i] == "input") {
      buffer.input = true;
    } else if (words[i] == "freed") {
      buffer.freed = true;
    } else if (words[i] == "repoison") {
      buffer.repoison = true;
    } else if (absl::StartsWith(words[i], "except=")) {
      ASSAY_ASSIGN_OR_RETURN(buffer.except, Number(words[i].substr(7)));
    } else {
      return Bad("unknown property of a buffer", words[i]);
    }
  }
  return parameter;
}

absl::Status ParsePlace(const Words& words, SuiteCase* to) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (pair.first != "block" && pair.first != "thread") return Bad("unknown place", words[i]);
    ASSAY_ASSIGN_OR_RETURN((pair.first == "block" ? to->block : to->thread),
                           Extents(pair.second, 0));
  }
  return absl::OkStatus();
}

absl::Status ParseHeaderLine(const std::string& line, SuiteCase* to, Words* twin) {
  const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (words[0] == "CASE") {
    to->description = line.substr(5);
  } else if (words[0] == "LAUNCH") {
    return ParseLaunch(words, &to->faulty_launch);
  } else if (words[0] == "TWIN") {
    *twin = words;
  } else if (words[0] == "BUFFER") {
    ASSAY_ASSIGN_OR_RETURN(SuiteParameter parameter, ParseBuffer(words));
    to->parameters.push_back(std::move(parameter));
  } else if (words[0] == "VALUE" && words.size() == 3) {
    to->parameters.push_back({std::nullopt, ParseType(words[1]), words[2]});
  } else if (words[0] == "AT") {
    return ParsePlace(words, to);
  } else if (words[0] == "RESULT" && words.size() == 4) {
    SuiteResult result{words[1]};
    ASSAY_ASSIGN_OR_RETURN(result.index, Number(words[2]));
    if (!absl::SimpleAtod(words[3], &result.value)) return Bad("not a number", words[3]);
    to->results.push_back(result);
  } else {
    return Bad("unknown line of the header", line);
  }
  return absl::OkStatus();
}

// "  @%p1 ld.global.u32 %r1, [%d1];" to "ld.global.u32".
std::string OpcodeOf(std::string_view line) {
  for (const absl::string_view word : absl::StrSplit(absl::string_view(line.data(), line.size()),
                                                     absl::ByAnyChar(" \t;"), absl::SkipEmpty())) {
    if (word.front() != '@' && word.back() != ':' && word != "{") return std::string(word);
  }
  return "";
}

// Takes one line of the kernel over into both texts.
absl::Status AddKernelLine(const std::string& line, int number, SuiteCase* to) {
  const absl::string_view trimmed = absl::StripLeadingAsciiWhitespace(line);
  if (absl::StartsWith(trimmed, "//FIX ")) {
    absl::StrAppend(&to->faulty, line, "\n");
    absl::StrAppend(&to->twin, trimmed.substr(6), "\n");
    return absl::OkStatus();
  }
  absl::StrAppend(&to->faulty, line, "\n");
  const size_t comment = line.find("//");
  Words words;
  if (comment != std::string::npos)
    words = absl::StrSplit(line.substr(comment + 2), ' ', absl::SkipEmpty());
  size_t next = 0;
  const bool only_faulty = !words.empty() && words[0] == "BUG";
  if (only_faulty) ++next;
  absl::StrAppend(&to->twin, only_faulty ? "" : line, "\n");
  for (; next + 1 < words.size() && (words[next] == "FAULT" || words[next] == "OR"); next += 2) {
    to->markers.push_back(
        {number, words[next + 1], OpcodeOf(line.substr(0, comment)), words[next] == "FAULT"});
  }
  return absl::OkStatus();
}

// The bytes of one value.
std::string Encode(Type type, double value) {
  const auto bytes_of = [](auto v) {
    return std::string(reinterpret_cast<const char*>(&v), sizeof(v));
  };
  switch (type) {
    case Type::kF32:
      return bytes_of(static_cast<float>(value));
    case Type::kF64:
      return bytes_of(value);
    default:
      break;
  }
  const std::string wide = bytes_of(static_cast<int64_t>(value));
  return wide.substr(0, static_cast<size_t>(TypeBytes(type)));
}

double Decode(Type type, const char* at) {
  const auto as = [&](auto v) {
    std::memcpy(&v, at, sizeof(v));
    return static_cast<double>(v);
  };
  switch (type) {
    case Type::kF32:
      return as(float{});
    case Type::kF64:
      return as(double{});
    case Type::kS32:
      return as(int32_t{});
    default:
      break;
  }
  switch (TypeBytes(type)) {
    case 1:
      return as(uint8_t{});
    case 2:
      return as(uint16_t{});
    case 4:
      return as(uint32_t{});
    default:
      return as(uint64_t{});
  }
}

struct PlacedBuffer {
  SuiteBuffer buffer;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

absl::StatusOr<PlacedBuffer> Place(const SuiteBuffer& buffer, KernelFixture* device) {
  PlacedBuffer placed{buffer};
  const auto each = static_cast<uint64_t>(TypeBytes(buffer.type));
  placed.bytes = each * buffer.count;
  if (buffer.fill == "empty") {
    placed.address = device->Reserve(buffer.name, placed.bytes);
  } else {
    std::string bytes;
    for (size_t i = 0; i < buffer.count; ++i)
      bytes += Encode(buffer.type, buffer.fill == "iota" ? static_cast<double>(i) : 0);
    placed.address = device->PutBytes(buffer.name, bytes.data(), bytes.size());
  }
  DeviceMemory& memory = device->memory();
  if (buffer.except.has_value()) {
    ASSAY_RETURN_IF_ERROR(
        memory.SetInitialized(placed.address + *buffer.except * each, each, false));
  }
  if (buffer.input) ASSAY_RETURN_IF_ERROR(memory.SetRole(placed.address, Role::kInput));
  if (buffer.freed) ASSAY_RETURN_IF_ERROR(memory.Free(placed.address));
  return placed;
}

}  // namespace

absl::StatusOr<SuiteCase> ParseSuiteCase(std::string_view name, std::string_view text) {
  SuiteCase result;
  result.name = std::string(name);
  result.faulty_launch.options.instructions_max = 1'000'000;
  Words twin;
  bool in_header = true;
  int number = 0;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::string line(part);
    ++number;
    in_header = in_header && absl::StartsWith(line, "// ");
    if (in_header) {
      ASSAY_RETURN_IF_ERROR(ParseHeaderLine(line.substr(3), &result, &twin));
      result.faulty += "\n";
      result.twin += "\n";
    } else {
      ASSAY_RETURN_IF_ERROR(AddKernelLine(line, number, &result));
    }
  }
  result.twin_launch = result.faulty_launch;
  ASSAY_RETURN_IF_ERROR(ParseLaunch(twin, &result.twin_launch));
  if (result.description.empty()) return Bad("the case does not say what is wrong", result.name);
  if (result.markers.empty()) return Bad("no line is marked with its fault", result.name);
  if (twin.empty() && result.faulty == result.twin)
    return Bad("the twin is the same as the faulty kernel", result.name);
  return result;
}

absl::StatusOr<SuiteOutcome> RunSuiteCase(const SuiteCase& suite_case, bool twin, uint64_t seed,
                                          int threads) {
  KernelFixture device(twin ? suite_case.twin : suite_case.faulty, 1 << 20);
  ASSAY_RETURN_IF_ERROR(device.load_status());
  KernelArguments arguments;
  std::vector<PlacedBuffer> buffers;
  for (const SuiteParameter& parameter : suite_case.parameters) {
    if (parameter.buffer.has_value()) {
      ASSAY_ASSIGN_OR_RETURN(PlacedBuffer placed, Place(*parameter.buffer, &device));
      arguments.Add(&placed.address, sizeof(placed.address));
      buffers.push_back(std::move(placed));
      continue;
    }
    double value = 0;
    if (!absl::SimpleAtod(parameter.value, &value)) return Bad("not a number", parameter.value);
    const std::string bytes = Encode(parameter.type, value);
    arguments.Add(bytes.data(), bytes.size());
  }
  const SuiteLaunch& launch = twin ? suite_case.twin_launch : suite_case.faulty_launch;
  LaunchOptions options = launch.options;
  options.seed = seed;
  options.threads = threads;
  SuiteOutcome outcome;
  for (int i = 0; i < launch.launches; ++i) {
    for (const PlacedBuffer& placed : buffers) {
      if (i == 0 || !placed.buffer.repoison) continue;
      ASSAY_RETURN_IF_ERROR(device.memory().SetInitialized(placed.address, placed.bytes, false));
    }
    ASSAY_ASSIGN_OR_RETURN(LaunchResult result, device.TryRun("kernel", arguments, options));
    outcome.faults.insert(outcome.faults.end(), result.faults.begin(), result.faults.end());
    outcome.output += result.output;
  }
  for (const PlacedBuffer& placed : buffers) {
    if (placed.buffer.freed) continue;
    const std::vector<char> bytes = device.Get<char>(placed.address, placed.bytes);
    std::vector<double>& values = outcome.buffers[placed.buffer.name];
    const auto each = static_cast<size_t>(TypeBytes(placed.buffer.type));
    for (size_t i = 0; i < placed.buffer.count; ++i)
      values.push_back(Decode(placed.buffer.type, bytes.data() + i * each));
  }
  return outcome;
}

}  // namespace assay::emulator
