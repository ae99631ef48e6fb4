// Counts what built PTX does, kind by kind, with the place of the first of each.
#ifndef ASSAY_WORKER_DETECT_PTX_TALLY_H_
#define ASSAY_WORKER_DETECT_PTX_TALLY_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "worker/backend/cuda/ptx_statements.h"
#include "worker/detect/detector.h"

namespace assay {

// Not thread-safe. Views are of the text that the statements come from.
class PtxTally {
 public:
  // Counts an instruction once a kind. `kind` says in plural what there is ("clock reads") and
  // outlives the tally; `example` names this one ("%clock64").
  void Add(std::string_view kind, std::string_view example, const PtxStatement& statement);

  // A notice a kind, in the order of their first addition. `files` names those of the statements.
  std::vector<DetectorFinding> Notices(const std::map<int, std::string_view>& files) const;

 private:
  struct Entry {
    std::string_view kind;
    std::vector<std::string> examples;  // the first few different ones
    int count = 0;
    size_t last_at = 0;  // of an instruction that was counted
    std::string function;
    int ptx_line = 0;
    int file = 0;
    int line = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_DETECT_PTX_TALLY_H_
