#include "server/services/filter.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

using Field = EvaluationCondition::Field;
using Operator = EvaluationCondition::Operator;

struct FieldName {
  std::string_view name;
  Field field;
};
constexpr FieldName kFields[] = {
    {"problem", Field::kProblem}, {"candidate", Field::kCandidate},
    {"state", Field::kState},     {"verdict", Field::kVerdict},
    {"level", Field::kLevel},     {"device_class", Field::kDeviceClass},
    {"label", Field::kLabel},     {"create_time", Field::kCreateTime},
};

absl::Status ErrorAt(size_t offset, std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "FILTER_INVALID",
                         absl::StrCat("filter, column ", offset + 1, ": ", Av(message)));
}

// Hostile text, safe to print and cut.
std::string Quoted(std::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(Av(text.substr(0, limits::kNameBytesMax))), "'");
}

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
         c == ':' || c == '/' || c == '+';
}

class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<EvaluationCondition>> Parse() {
    std::vector<EvaluationCondition> conditions;
    SkipBlanks();
    if (AtEnd()) return conditions;
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(EvaluationCondition condition, ParseComparison());
      conditions.push_back(std::move(condition));
      SkipBlanks();
      if (AtEnd()) return conditions;
      const size_t at = position_;
      const std::string_view word = TakeWord();
      if (word != "AND") {
        return ErrorAt(at, absl::StrCat("expected AND or the end, found ", Found(at),
                                        "; only comparisons joined by AND are supported"));
      }
      SkipBlanks();
    }
  }

 private:
  bool AtEnd() const { return position_ >= text_.size(); }

  void SkipBlanks() {
    while (!AtEnd() && absl::ascii_isspace(static_cast<unsigned char>(text_[position_]))) {
      ++position_;
    }
  }

  std::string_view TakeWord() {
    const size_t start = position_;
    while (!AtEnd() && IsWordByte(text_[position_])) ++position_;
    return text_.substr(start, position_ - start);
  }

  // What stands at `at`, safe to print.
  std::string Found(size_t at) const {
    if (at >= text_.size()) return "the end";
    return Quoted(text_.substr(at, 16));
  }

  absl::StatusOr<EvaluationCondition> ParseComparison() {
    const size_t field_at = position_;
    const std::string_view name = TakeWord();
    const FieldName* field = nullptr;
    for (const FieldName& known : kFields) {
      if (known.name == name) field = &known;
    }
    if (field == nullptr) {
      return ErrorAt(field_at, absl::StrCat("expected a field, found ", Found(field_at),
                                            "; known: problem, candidate, state, verdict, level, "
                                            "device_class, label, create_time"));
    }
    SkipBlanks();
    EvaluationCondition condition;
    condition.field = field->field;
    ASSAY_RETURN_IF_ERROR(ParseOperator(&condition));
    SkipBlanks();
    const size_t value_at = position_;
    ASSAY_ASSIGN_OR_RETURN(std::string value, ParseValue());
    ASSAY_RETURN_IF_ERROR(SetValue(value_at, std::move(value), &condition));
    return condition;
  }

  absl::Status ParseOperator(EvaluationCondition* condition) {
    const size_t at = position_;
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with("!=")) {
      condition->op = Operator::kNotEqual;
      position_ += 2;
    } else if (rest.starts_with("<=") || rest.starts_with(">=")) {
      return ErrorAt(at, "<= and >= are not supported; use < or >");
    } else if (rest.starts_with("=")) {
      condition->op = Operator::kEqual;
      position_ += 1;
    } else if (rest.starts_with("<")) {
      condition->op = Operator::kLess;
      position_ += 1;
    } else if (rest.starts_with(">")) {
      condition->op = Operator::kGreater;
      position_ += 1;
    } else {
      return ErrorAt(at, absl::StrCat("expected =, !=, < or >, found ", Found(at)));
    }
    const bool ordered = condition->op == Operator::kLess || condition->op == Operator::kGreater;
    if (ordered != (condition->field == Field::kCreateTime)) {
      return ErrorAt(at, ordered ? "< and > are for create_time only; use = or !="
                                 : "create_time takes < and > only");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ParseValue() {
    const size_t at = position_;
    if (AtEnd()) return ErrorAt(at, "expected a value, found the end");
    const char quote = text_[at];
    if (quote != '"' && quote != '\'') {
      const std::string_view word = TakeWord();
      if (word.empty()) return ErrorAt(at, absl::StrCat("expected a value, found ", Found(at)));
      return std::string(word);
    }
    ++position_;
    std::string value;
    while (!AtEnd() && text_[position_] != quote) {
      char c = text_[position_++];
      if (c == '\\') {
        if (AtEnd()) break;
        c = text_[position_++];
        if (c != '"' && c != '\'' && c != '\\') {
          return ErrorAt(position_ - 2, "only \\\", \\' and \\\\ are known escapes");
        }
      }
      if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
        return ErrorAt(position_ - 1, "control bytes are not allowed in a value");
      }
      value.push_back(c);
    }
    if (AtEnd()) return ErrorAt(at, "the quote is not closed");
    ++position_;
    return value;
  }

  static absl::Status SetValue(size_t at, std::string value, EvaluationCondition* condition) {
    switch (condition->field) {
      case Field::kProblem:
        condition->text = WithCollection("problems/", std::move(value));
        return absl::OkStatus();
      case Field::kCandidate:
        condition->text = WithCollection("candidates/", std::move(value));
        return absl::OkStatus();
      case Field::kDeviceClass:
      case Field::kLabel:
        condition->text = std::move(value);
        return absl::OkStatus();
      case Field::kState: {
        v1::State state;
        if (!v1::State_Parse(value, &state)) return UnknownEnum(at, "state", value);
        condition->number = state;
        return absl::OkStatus();
      }
      case Field::kVerdict: {
        v1::Verdict verdict;
        if (!v1::Verdict_Parse(value, &verdict)) return UnknownEnum(at, "verdict", value);
        condition->number = verdict;
        return absl::OkStatus();
      }
      case Field::kLevel: {
        v1::Level level;
        if (!v1::Level_Parse(value, &level)) return UnknownEnum(at, "level", value);
        condition->number = level;
        return absl::OkStatus();
      }
      case Field::kCreateTime:
        break;
    }
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, value, &time, &error) || time < absl::UnixEpoch() ||
        time > absl::FromUnixSeconds(9'000'000'000)) {
      return ErrorAt(
          at, absl::StrCat(Quoted(value), " is not an RFC 3339 time such as 2024-05-01T12:00:00Z"));
    }
    condition->number = absl::ToUnixNanos(time);
    return absl::OkStatus();
  }

  static std::string WithCollection(std::string_view collection, std::string value) {
    if (std::string_view(value).starts_with(collection)) return value;
    return absl::StrCat(Av(collection), value);
  }

  static absl::Status UnknownEnum(size_t at, std::string_view what, std::string_view value) {
    return ErrorAt(
        at, absl::StrCat("unknown ", Av(what), " ", Quoted(value), "; use a name of the API, e.g. ",
                         what == "state"     ? "SUCCEEDED"
                         : what == "verdict" ? "PASSED"
                                             : "RANKED"));
  }

  const std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<EvaluationCondition>> ParseEvaluationFilter(std::string_view text) {
  if (text.size() > limits::kFilterBytesMax) {
    return ErrorAt(limits::kFilterBytesMax,
                   absl::StrCat("the filter has ", text.size(), " bytes, at most ",
                                limits::kFilterBytesMax, " are allowed"));
  }
  return FilterParser(text).Parse();
}

}  // namespace assay
