// The statements of PTX text one by one: functions, instructions and variables, each with its place
// in the text and, by the last `.loc`, in the source.
//
// A scan, no parser: whether the text is right is for the driver to say. Takes time linear in the
// text. Not thread-safe; the text outlives it and what it gives.
#ifndef ASSAY_WORKER_BACKEND_CUDA_PTX_STATEMENTS_H_
#define ASSAY_WORKER_BACKEND_CUDA_PTX_STATEMENTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "worker/backend/cuda/ptx_words.h"

namespace assay {

struct PtxStatement {
  enum class Kind {
    kFunction,     // `.entry` or `.func`, before its instructions
    kInstruction,  // inside of the last function that has a body
    kVariable,     // in `.global` or `.const` space
    kAlias,        // of a function
  };
  Kind kind = Kind::kFunction;
  // Of a function, variable or alias; of an instruction that of its function.
  std::string_view name;
  // What it names is elsewhere: a function without a body, or a variable that is `.extern`.
  bool is_declaration = false;
  // As written, blanks and comments removed: "ld.global.L2::128B.f32".
  std::string opcode;
  // The words of its operands, brackets and commas among them.
  std::vector<std::string_view> operands;
  // The initial value, without the zeros that follow it. Where it is an address it holds zeros.
  std::string data;
  size_t at = 0;  // where an instruction begins in the text
  int ptx_line = 0;
  // In the source; 0: unknown.
  int file = 0;  // key of PtxStatements::files
  int line = 0;

  // Whether `opcode` has `part` between its dots: "evict_last" is none of the one above, "f32" is.
  bool Has(std::string_view part) const;
};

class PtxStatements {
 public:
  explicit PtxStatements(std::string_view ptx) : text_(ptx), words_(ptx) {}

  // False at the end.
  bool Next(PtxStatement* statement);

  // Names of `.file`. Whole at the end of the text: they may stand behind what refers to them.
  const std::map<int, std::string_view>& files() const { return files_; }

 private:
  std::string_view Word();
  std::string_view Peek() const;
  void SkipBalanced(std::string_view open, std::string_view close);
  void SkipStatement();
  void ReadFile();
  void ReadLocation();
  bool ReadModuleWord(std::string_view word, PtxStatement* statement);
  bool ReadBodyWord(std::string_view word, PtxStatement* statement);
  void ReadFunction(PtxStatement* statement);
  void ReadVariable(PtxStatement* statement);
  void ReadValue(size_t element_bytes, std::string* data);
  void ReadInstruction(std::string_view word, PtxStatement* statement);

  const std::string_view text_;
  PtxWords words_;
  std::map<int, std::string_view> files_;
  std::string_view function_;
  int depth_ = 0;  // of braces; 0: outside of functions
  bool is_extern_ = false;
  int file_ = 0;
  int source_line_ = 0;
  size_t counted_ = 0;  // bytes of the text whose lines are in ptx_line_
  int ptx_line_ = 1;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_PTX_STATEMENTS_H_
