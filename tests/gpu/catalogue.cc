#include "tests/gpu/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"
#include "worker/agent/build_plan.h"
#include "worker/builder/cuda_builder.h"

namespace assay {
namespace {

constexpr size_t kPtxBytesMax = 16 << 20;
constexpr size_t kDigestDigits = 16;

bool IsDeviceSource(const std::filesystem::path& path) {
  return path.extension() == ".cu" || path.extension() == ".ptx";
}

bool HoldsDeviceSource(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (IsDeviceSource(entry.path())) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> ShippedCandidates(const std::string& problems) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& problem : std::filesystem::directory_iterator(problems, ignored)) {
    for (const auto& entry :
         std::filesystem::directory_iterator(problem.path() / "candidates", ignored)) {
      if (IsDeviceSource(entry.path()) || (entry.is_directory() && HoldsDeviceSource(entry))) {
        paths.push_back(entry.path().string());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Catalogue::Catalogue(CatalogueOptions options) : options_(std::move(options)) {}
Catalogue::~Catalogue() = default;

absl::StatusOr<const v1::Problem*> Catalogue::ProblemOf(const std::string& id) {
  std::unique_ptr<v1::Problem>& known = problems_[id];
  if (known == nullptr) {
    auto problem = std::make_unique<v1::Problem>();
    ASSAY_RETURN_IF_ERROR(
        LoadProblemDirectory(absl::StrCat(options_.problems, "/", id), problem.get()));
    known = std::move(problem);
  }
  return known.get();
}

absl::StatusOr<GpuCandidate> Catalogue::Load(const std::string& path) {
  auto candidate = std::make_unique<v1::Candidate>();
  ASSAY_RETURN_IF_ERROR(LoadCandidate(path, "", candidate.get()));
  ASSAY_RETURN_IF_ERROR(ValidateCandidate(*candidate));
  GpuCandidate loaded;
  loaded.problem_id = ProblemId(candidate->spec().problem());
  loaded.label = candidate->spec().label();
  ASSAY_ASSIGN_OR_RETURN(loaded.problem, ProblemOf(loaded.problem_id));
  ASSAY_RETURN_IF_ERROR(CheckCandidateAgainstProblem(*candidate, *loaded.problem));
  ASSAY_ASSIGN_OR_RETURN(loaded.configuration, ResolveConfiguration(candidate->spec(), {}));
  ASSAY_ASSIGN_OR_RETURN(loaded.ptx, Ptx(*loaded.problem, *candidate, loaded.configuration));
  candidates_.push_back(std::move(candidate));
  loaded.candidate = candidates_.back().get();
  return loaded;
}

absl::StatusOr<std::string> Catalogue::Ptx(const v1::Problem& problem,
                                           const v1::Candidate& candidate,
                                           const ValueMap& configuration) {
  if (candidate.spec().language() == v1::PTX) {
    const std::vector<std::string> sources = CandidateSources(candidate);
    for (const v1::SourceFile& file : candidate.files()) {
      if (sources.size() == 1 && file.path() == sources[0]) return file.content();
    }
    return absl::InvalidArgumentError("a PTX candidate has exactly one source");
  }
  if (candidate.spec().language() != v1::CUDA_CPP) {
    return absl::InvalidArgumentError("not a candidate for a GPU");
  }
  const std::string path =
      absl::StrCat(options_.ptx_directory, "/", ProblemId(candidate.spec().problem()), ".",
                   candidate.spec().label(), ".sm_", options_.arch, ".",
                   CandidateDigest(candidate).substr(0, kDigestDigits), ".ptx");
  const absl::StatusOr<std::string> kept = ReadFile(path, kPtxBytesMax);
  if (kept.ok()) return *kept;
  ASSAY_ASSIGN_OR_RETURN(std::string ptx, Compile(problem, candidate, configuration));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, ptx));
  return ptx;
}

absl::StatusOr<std::string> Catalogue::Compile(const v1::Problem& problem,
                                               const v1::Candidate& candidate,
                                               const ValueMap& configuration) {
  if (cuda_ == nullptr) {
    CudaBuilderOptions builder;
    builder.cache_directory = options_.ptx_directory + "/build-cache";
    builder.helper = options_.helper;
    builder.target = absl::StrCat("compute_", options_.arch);
    builder.resource_report = false;
    ASSAY_RETURN_IF_ERROR(CreateDirectories(builder.cache_directory));
    ASSAY_ASSIGN_OR_RETURN(cuda_, MakeCudaBuilder(builder));
  }
  ASSAY_ASSIGN_OR_RETURN(const BuildResult built,
                         cuda_->Build(CandidateBuild(problem, candidate, configuration)));
  if (!built.ok) {
    return absl::InvalidArgumentError(
        absl::StrCat("it does not compile (", built.reason,
                     "): ", built.message.empty() ? built.log.substr(0, 500) : built.message));
  }
  return ReadFile(built.artifact_path, kPtxBytesMax);
}

}  // namespace assay
