// Which lines of our standard headers stand in the way of a program that defines the same names.
//
// NVRTC has no standard headers, so many sources bring typedefs and constants of their own, and
// some headers are there without an include. What a source defines itself must win. Pure functions
// over texts that are hostile.
#ifndef ASSAY_WORKER_BUILDER_LEFT_OUT_LINES_H_
#define ASSAY_WORKER_BUILDER_LEFT_OUT_LINES_H_

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// Name and text, as NVRTC is given them.
using HeaderTexts = std::vector<std::pair<const char*, const char*>>;

// Header and line, from 1.
using HeaderLines = std::set<std::pair<std::string, int>>;

// Lines of `headers` that the log of a failed compilation speaks of: that declared what is declared
// again, or defined a macro whose name stands in a source line with a syntax error. Empty when the
// headers had no part in it. Such a line is whole in itself: a typedef, a macro, a use of a macro.
HeaderLines LinesInTheWay(std::string_view log, const HeaderTexts& headers);

// `text` of header `name` with those lines blank, so that the others keep their numbers.
std::string WithoutLines(std::string_view name, std::string_view text, const HeaderLines& lines);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_LEFT_OUT_LINES_H_
