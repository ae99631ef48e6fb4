// Problems for tests: from text, from the source tree, and the shared library of a compiled one.
#ifndef ASSAY_KERNELS_TESTING_PROBLEMS_H_
#define ASSAY_KERNELS_TESTING_PROBLEMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "assay/v1/problem.pb.h"

namespace assay::testing {

// Parses text format; fails the test and gives an empty problem when it does not parse.
v1::Problem ProblemFromText(const std::string& text);

// A valid problem: y[rows, cols] f32 = x[rows, cols] f32 times s[rows] f32, with permutations and
// scales, and its reference.
v1::Problem ScaleRowsProblem();

// $ASSAY_SOURCE_DIR/kernels/problems; "" when the variable is not set.
std::string ProblemsDirectory();

// Folders of ProblemsDirectory by name, sorted.
std::vector<std::string> ProblemFolders();

// True when a command can be run by the shell.
bool HasCommand(const std::string& command);

// Writes `text` to `path`, runs g++ with `arguments` on it, gives what it printed. An error when
// g++ fails.
absl::StatusOr<std::string> CompileCpp(const std::string& path, const std::string& text,
                                       const std::string& arguments);

}  // namespace assay::testing

#endif  // ASSAY_KERNELS_TESTING_PROBLEMS_H_
