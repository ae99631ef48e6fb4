#include "worker/agent/build_plan.h"

#include "absl/strings/match.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "kernels/problem.h"

namespace assay {
namespace {

bool IsCppSource(const std::string& path) {
  for (const char* ending : {".cc", ".cpp", ".cxx", ".c++"}) {
    if (absl::EndsWith(path, ending)) return true;
  }
  return false;
}

BuildRequest ProblemBuild(const v1::Problem& problem, const std::string& source) {
  BuildRequest request;
  for (const v1::SourceFile& file : problem.files()) {
    request.files.emplace_back(file.path(), file.content());
  }
  request.sources = {source};
  return request;
}

}  // namespace

BuildRequest CandidateBuild(const v1::Problem& problem, const v1::Candidate& candidate,
                            const ValueMap& configuration) {
  BuildRequest request;
  for (const v1::SourceFile& file : candidate.files()) {
    request.files.emplace_back(file.path(), file.content());
    if (candidate.spec().sources().empty() && IsCppSource(file.path())) {
      request.sources.push_back(file.path());
    }
  }
  for (const std::string& source : candidate.spec().sources()) request.sources.push_back(source);
  request.prelude = CandidatePrototype(problem);
  request.invoke_source = InvokeSource(problem, false);
  for (const std::string& option : candidate.spec().compile_options()) {
    request.options.push_back(option);
  }
  request.macros.assign(configuration.begin(), configuration.end());
  return request;
}

BuildRequest ReferenceBuild(const v1::Problem& problem) {
  BuildRequest request = ProblemBuild(problem, problem.reference());
  request.prelude = ReferencePrototype(problem);
  request.invoke_source = InvokeSource(problem, true);
  return request;
}

BuildRequest BaselineBuild(const v1::Problem& problem, const v1::Baseline& baseline) {
  BuildRequest request = ProblemBuild(problem, baseline.source());
  request.prelude = CandidatePrototype(problem);
  request.invoke_source = InvokeSource(problem, false);
  for (const std::string& library : baseline.libraries()) request.libraries.push_back(library);
  return request;
}

}  // namespace assay
