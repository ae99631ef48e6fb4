// A candidate's fingerprint. Each file gives a sequence of tokens in which the names that the file
// itself declares stand as their number in order of first use; all else stays as it is: numbers,
// strings, keywords, types, and functions that come from elsewhere. One lexer serves C++, CUDA C++
// and PTX, whose comments, numbers and strings look alike. It is a heuristic that folds copies on
// leaderboards and decides nothing else.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "base/digest.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"

namespace assay {
namespace {

struct Token {
  std::string_view text;
  bool is_name = false;
};

bool IsNameStart(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}
bool IsNamePart(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}
bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  // In PTX a % starts the name of a register.
  Lexer(std::string_view text, bool is_ptx) : text_(text), is_ptx_(is_ptx) {}
  std::vector<Token> Run() {
    std::vector<Token> tokens;
    while (at_ < text_.size()) {
      const size_t start = at_;
      const char c = text_[at_];
      if (absl::ascii_isspace(static_cast<unsigned char>(c)) || IsSplice()) {
        ++at_;
      } else if (StartsWith("//")) {
        Skip("\n");
      } else if (StartsWith("/*")) {
        at_ += 2;
        Skip("*/");
      } else if (c == '"' || c == '\'') {
        Quoted(c);
        tokens.push_back({text_.substr(start, at_ - start)});
      } else if (IsDigit(c) || (c == '.' && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1]))) {
        Number();
        tokens.push_back({text_.substr(start, at_ - start)});
      } else if (IsNameStart(c) || (is_ptx_ && c == '%')) {
        ++at_;
        while (at_ < text_.size() && IsNamePart(text_[at_])) ++at_;
        const std::string_view name = text_.substr(start, at_ - start);
        if (name.back() == 'R' && at_ < text_.size() && text_[at_] == '"') {
          RawString();
          tokens.push_back({text_.substr(start, at_ - start)});
        } else {
          tokens.push_back({name, true});
        }
      } else {
        ++at_;
        tokens.push_back({text_.substr(start, 1)});
      }
    }
    return tokens;
  }

 private:
  bool StartsWith(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  bool IsSplice() const { return StartsWith("\\\n") || StartsWith("\\\r\n"); }
  void Skip(std::string_view end) {
    const size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }
  void Quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }
  void RawString() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = text_.size();
      return;
    }
    const std::string end = absl::StrCat(")", Av(text_.substr(at_ + 1, open - at_ - 1)), "\"");
    at_ = open;
    Skip(end);
  }
  void Number() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool sign = (c == '+' || c == '-') &&
                        std::string_view("eEpP").find(text_[at_ - 1]) != std::string_view::npos;
      if (!IsNamePart(c) && c != '.' && c != '\'' && !sign) return;
      ++at_;
    }
  }

  const std::string_view text_;
  const bool is_ptx_;
  size_t at_ = 0;
};

// Words that stand before a use of a name as a type does before its declaration.
bool IsStatementWord(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "return",   "else",  "case",   "goto", "throw",   "new",      "delete", "sizeof",
      "co_await", "and",   "or",     "not",  "include", "pragma",   "if",     "elif",
      "ifdef",    "undef", "target", "asm",  "alignof", "decltype", "ifndef", "operator"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// Names that mean the same everywhere, whatever stands before them.
bool IsCommonWord(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "const",    "volatile", "restrict",  "static",  "inline",    "constexpr", "unsigned",
      "signed",   "long",     "short",     "int",     "char",      "float",     "double",
      "void",     "bool",     "auto",      "struct",  "class",     "enum",      "union",
      "template", "typename", "namespace", "using",   "extern",    "typedef",   "operator",
      "return",   "if",       "else",      "for",     "while",     "do",        "switch",
      "case",     "break",    "continue",  "default", "goto",      "sizeof",    "this",
      "true",     "false",    "nullptr",   "new",     "delete",    "define",    "include",
      "pragma",   "ret",      "exit",      "bra",     "call",      "trap",      "bar",
      "uni",      "std",      "size_t",    "defined", "endif",     "ifdef",     "ifndef",
      "alignas",  "noexcept", "public",    "private", "protected", "requires",  "concept"};
  if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) return true;
  if (word.size() > 1 && word[0] == '_' && (word[1] == '_' || absl::ascii_isupper(word[1]))) {
    return true;
  }
  return absl::StartsWith(Av(word), "_mm") || absl::StartsWith(Av(word), "sm_") ||
         (word.size() > 2 && absl::EndsWith(Av(word), "_t"));
}

// Whether the name at `i` stands where a declaration would introduce it.
bool IsDeclaration(const std::vector<Token>& tokens, size_t i) {
  const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : ";";
  if (next == "." && tokens[i].text.front() != '%') return false;  // an opcode, or a member's owner
  if (i == 0) return false;
  const Token& before = tokens[i - 1];
  if (before.is_name) return !IsStatementWord(before.text);
  if (next == "(") return false;
  // `float* x`, `T& x`, `vector<int> x`, and the second of `int a, b`.
  if (before.text == "*" || before.text == "&" || before.text == ">" || before.text == ",") {
    return next == "=" || next == ";" || next == "," || next == ")" || next == "[" || next == "{";
  }
  return next == ":" && before.text == ";";  // a label
}

struct FileCode {
  std::map<std::string_view, size_t> own;  // the file's own names, by order of first use
  std::string digest;
};

FileCode ReadFile(std::string_view content, bool is_ptx,
                  const std::set<std::string_view>& parameters) {
  const std::vector<Token> tokens = Lexer(content, is_ptx).Run();
  std::set<std::string_view> declared(parameters);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is_name && !IsCommonWord(tokens[i].text) && IsDeclaration(tokens, i)) {
      declared.insert(tokens[i].text);
    }
  }
  FileCode code;
  std::string normal;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    // A kernel of PTX may be named as an opcode is.
    const bool is_opcode =
        is_ptx && token.text.front() != '%' && i + 1 < tokens.size() && tokens[i + 1].text == ".";
    const bool is_own = token.is_name && !is_opcode && declared.count(token.text) != 0;
    const bool is_path = i > 0 && tokens[i - 1].text == "include" && token.text.front() == '"';
    if (is_own) {
      const size_t number = code.own.try_emplace(token.text, code.own.size()).first->second;
      absl::StrAppend(&normal, "\x01", number, "\n");
    } else {
      absl::StrAppend(&normal, is_path ? absl::string_view("\x02") : Av(token.text), "\n");
    }
  }
  code.digest = Sha256Hex(normal);
  return code;
}

// An expression of the plan: the candidate's own names as numbers.
std::string NormalExpression(std::string_view text, const std::map<std::string, std::string>& own) {
  std::string normal;
  for (const Token& token : Lexer(text, /*is_ptx=*/false).Run()) {
    const auto found = own.find(std::string(token.text));
    absl::StrAppend(&normal, found == own.end() ? Av(token.text) : absl::string_view(found->second),
                    " ");
  }
  return normal;
}

void AddSpec(const v1::CandidateSpec& spec, const std::vector<FileCode>& files,
             DigestBuilder* digest) {
  std::map<std::string, std::string> own;
  for (const v1::TuningParameter& parameter : spec.parameters()) {
    own.emplace(parameter.name(), absl::StrCat("\x01p", own.size()));
    digest->Add(static_cast<int64_t>(parameter.values_size()));
    for (const int64_t value : parameter.values()) digest->Add(value);
  }
  for (const v1::Workspace& workspace : spec.plan().workspaces()) {
    own.emplace(workspace.name(), absl::StrCat("\x01w", own.size()));
    digest->Add(NormalExpression(workspace.bytes(), own));
  }
  for (const std::string& constraint : spec.constraints()) {
    digest->Add(NormalExpression(constraint, own));
  }
  for (const std::string& option : spec.compile_options()) digest->Add(option);
  for (const v1::Launch& launch : spec.plan().launches()) {
    std::string kernel = launch.kernel();
    for (const FileCode& file : files) {
      const auto found = file.own.find(launch.kernel());
      if (found != file.own.end()) kernel = absl::StrCat(file.digest, "\x01", found->second);
    }
    digest->Add(kernel).Add(NormalExpression(launch.shared_bytes(), own));
    for (const auto* list : {&launch.grid(), &launch.block(), &launch.args()}) {
      digest->Add(static_cast<int64_t>(list->size()));
      for (const std::string& text : *list) digest->Add(NormalExpression(text, own));
    }
  }
}

}  // namespace

std::string CandidateFingerprint(const v1::Candidate& candidate) {
  const v1::CandidateSpec& spec = candidate.spec();
  std::set<std::string_view> parameters;
  for (const v1::TuningParameter& parameter : spec.parameters())
    parameters.insert(parameter.name());
  std::vector<FileCode> files;
  for (const v1::SourceFile& file : candidate.files()) {
    files.push_back(ReadFile(file.content(), spec.language() == v1::PTX, parameters));
  }
  if (files.empty()) return "";
  // Names of files are names too.
  std::stable_sort(files.begin(), files.end(),
                   [](const FileCode& a, const FileCode& b) { return a.digest < b.digest; });
  DigestBuilder digest;
  digest.Add("assay.fingerprint.v1").Add(ProblemId(spec.problem())).Add(int64_t{spec.language()});
  for (const FileCode& file : files) digest.Add(file.digest);
  AddSpec(spec, files, &digest);
  return digest.Finish();
}

}  // namespace assay
