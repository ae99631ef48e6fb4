#include "worker/agent/build_plan.h"

#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"

namespace assay {
namespace {

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
  }
  request.sources = CandidateSources(candidate);
  if (candidate.spec().language() == v1::CPP) {
    request.prelude = CandidatePrototype(problem);
    request.invoke_source = InvokeSource(problem, false);
  }
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
