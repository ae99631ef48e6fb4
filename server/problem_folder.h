// Loads a folder of problem folders into the store when the server starts.
#ifndef ASSAY_SERVER_PROBLEM_FOLDER_H_
#define ASSAY_SERVER_PROBLEM_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/services/admission.h"
#include "server/services/catalogue.h"
#include "store/store.h"

namespace assay {

struct ProblemFolderReport {
  int created_count = 0;    // new, or of a higher version
  int unchanged_count = 0;  // stored already, or older than what is stored
  // One line for each folder that was not taken, with its path and the reason.
  std::vector<std::string> errors;
};

// Takes every direct subfolder of `directory` that holds a problem.textproto, in order of name,
// and the audit.textproto beside it, if the version has no audit yet.
// Blocks. A bad folder is reported and does not stop the others; NOT_FOUND when `directory` itself
// cannot be read.
absl::StatusOr<ProblemFolderReport> LoadProblemFolder(const std::string& directory,
                                                      const Admission& admission, Store* store,
                                                      Catalogue* catalogue);

}  // namespace assay

#endif  // ASSAY_SERVER_PROBLEM_FOLDER_H_
