// The candidates that are run, and their PTX.
#ifndef ASSAY_TESTS_GPU_CATALOGUE_H_
#define ASSAY_TESTS_GPU_CATALOGUE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/gpu/cross_check.h"
#include "worker/builder/builder.h"

namespace assay {

// Every device-tier candidate below `problems`/*/candidates, sorted: single .cu and .ptx files, and
// folders that hold such.
std::vector<std::string> ShippedCandidates(const std::string& problems);

struct CatalogueOptions {
  std::string problems;       // the folder kernels/problems
  std::string ptx_directory;  // PTX is kept here, by content, and taken from here
  std::string helper;         // path of assay-nvrtc
  int arch = 80;              // that CUDA C++ is compiled for
};

// Not thread-safe. Owns the messages that its candidates refer to.
class Catalogue {
 public:
  explicit Catalogue(CatalogueOptions options);
  ~Catalogue();

  // Loads a candidate, and compiles it unless its PTX is there already. Blocks for up to seconds.
  absl::StatusOr<GpuCandidate> Load(const std::string& path);

 private:
  absl::StatusOr<const v1::Problem*> ProblemOf(const std::string& id);
  absl::StatusOr<std::string> Ptx(const v1::Problem& problem, const v1::Candidate& candidate,
                                  const ValueMap& configuration);
  absl::StatusOr<std::string> Compile(const v1::Problem& problem, const v1::Candidate& candidate,
                                      const ValueMap& configuration);

  const CatalogueOptions options_;
  std::map<std::string, std::unique_ptr<v1::Problem>> problems_;
  std::vector<std::unique_ptr<v1::Candidate>> candidates_;
  std::unique_ptr<Builder> cuda_;  // made when it is first needed
};

}  // namespace assay

#endif  // ASSAY_TESTS_GPU_CATALOGUE_H_
