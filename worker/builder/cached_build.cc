#include "worker/builder/cached_build.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/status.h"
#include "worker/builder/compile_options.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

bool Built(const CompileRunResult& run, const BuildSteps& steps) {
  return !run.timed_out && !run.log_flood && !run.artifact_too_large && run.exit.code == 0 &&
         steps.is_artifact(run.artifact);
}

}  // namespace

std::string RefuseRequest(const BuildRequest& request,
                          const std::function<bool(std::string_view)>& is_option_allowed,
                          std::string* reason) {
  *reason = "OPTION_NOT_ALLOWED";
  for (const std::string& option : request.options) {
    if (!is_option_allowed(option)) {
      return absl::StrCat("option '", CleanText(option),
                          "' is not on the allow-list of worker/builder/README.md");
    }
  }
  for (const auto& [name, value] : request.macros) {
    if (!IsMacroNameAllowed(name)) {
      return absl::StrCat("parameter '", CleanText(name), "' is not a C identifier");
    }
  }
  *reason = "COMPILE_FAILED";
  if (request.sources.empty()) return "there is no source to compile";
  for (const auto& [path, content] : request.files) {
    if (!IsSourcePathAllowed(path)) {
      return absl::StrCat("file name '", CleanText(path),
                          "' is not a plain relative path of letters, digits and ._+-");
    }
  }
  for (const std::string& source : request.sources) {
    const bool known = std::any_of(request.files.begin(), request.files.end(),
                                   [&](const auto& file) { return file.first == source; });
    if (!known) return absl::StrCat("source '", CleanText(source), "' is not among the files");
  }
  reason->clear();
  return "";
}

std::string BuildKey(const std::vector<std::string>& identity, const BuildRequest& request,
                     const std::vector<std::string>& arguments) {
  DigestBuilder digest;
  for (const auto* strings : {&identity, &arguments}) {
    digest.Add(static_cast<int64_t>(strings->size()));
    for (const std::string& text : *strings) digest.Add(text);
  }
  digest.Add(static_cast<int64_t>(request.files.size()));
  for (const auto& [path, content] : request.files) digest.Add(path).Add(content);
  digest.Add(request.prelude).Add(request.invoke_source);
  return digest.Finish();
}

absl::StatusOr<BuildResult> BuildThroughCache(const BuildCache& cache, const std::string& key,
                                              const BuildSteps& steps, BuildResult result,
                                              std::string* report) {
  const absl::Time start = absl::Now();
  std::optional<BuildCache::Entry> entry = cache.Find(key);
  result.from_cache = entry.has_value();
  if (!entry.has_value()) {
    ASSAY_ASSIGN_OR_RETURN(const CompileRunResult run, steps.compile());
    result.log = CleanText(run.log);
    result.diagnostics = steps.read_diagnostics(result.log);
    if (!Built(run, steps)) {
      absl::StatusOr<CompileFailure> failure = steps.judge(run, result.diagnostics);
      if (!failure.ok()) return Annotate(failure.status(), "building");
      result.reason = std::move(failure->reason);
      result.message = std::move(failure->message);
      result.duration = absl::Now() - start;
      return result;
    }
    Inspection inspection;
    if (steps.inspect) {
      ASSAY_ASSIGN_OR_RETURN(inspection, steps.inspect(run.artifact));
    }
    if (inspection.refused) {
      absl::StrAppend(&result.log, inspection.log);
      result.diagnostics.insert(result.diagnostics.begin(), inspection.diagnostics.begin(),
                                inspection.diagnostics.end());
      result.reason = inspection.reason;
      result.duration = absl::Now() - start;
      return result;
    }
    ASSAY_ASSIGN_OR_RETURN(entry, cache.Store(key, run.artifact, result.log, inspection.report));
  }
  result.ok = true;
  result.artifact_path = entry->path;
  result.artifact_digest = entry->digest;
  result.log = entry->log;
  result.diagnostics = steps.read_diagnostics(result.log);
  if (report != nullptr) *report = entry->report;
  result.duration = absl::Now() - start;
  return result;
}

}  // namespace assay
