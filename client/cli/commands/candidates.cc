// assay candidates show|list|propose
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"
#include "kernels/candidate.h"
#include "kernels/plan/propose.h"
#include "kernels/problem.h"

namespace assay {
namespace {

absl::StatusOr<int> RunShow(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one candidate"));
  const std::string& word = context.arguments.positional()[0];
  v1::GetCandidateRequest request;
  request.set_name(word.find('/') == std::string::npos ? absl::StrCat("candidates/", word) : word);
  Connection connection(context.server);
  v1::Candidate candidate;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.candidates().GetCandidate(Connection::Context().get(), request, &candidate)));
  if (context.json) {
    std::cout << ToJson(candidate) << "\n";
    return kExitPassed;
  }
  std::cout << candidate.name() << "  " << candidate.spec().problem() << "/"
            << PrintableLine(candidate.spec().label()) << "\ndigest " << candidate.digest() << "\n";
  if (!candidate.clone_of().empty()) {
    std::cout << "NOTICE the same code as " << candidate.clone_of()
              << " but for comments, layout and names; they share one place on leaderboards\n";
  }
  for (const v1::SourceFile& file : candidate.files()) {
    std::cout << "\n--- " << PrintableLine(file.path()) << "\n" << Printable(file.content());
  }
  return kExitPassed;
}

absl::StatusOr<int> RunList(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  ASSAY_ASSIGN_OR_RETURN(int64_t left, GetListLimit(context));
  v1::ListCandidatesRequest request;
  if (context.arguments.Has("problem")) {
    request.set_problem(absl::StrCat("problems/", ProblemId(context.arguments.Get("problem"))));
  }
  request.set_page_token(context.arguments.Get("page-token"));
  Connection connection(context.server);
  std::vector<std::vector<std::string>> rows = {
      {"candidate", "problem", "label", "author", "model"}};
  do {
    request.set_page_size(static_cast<int>(std::min<int64_t>(left, limits::kPageSizeMax)));
    v1::ListCandidatesResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.candidates().ListCandidates(Connection::Context().get(), request, &response)));
    for (const v1::Candidate& candidate : response.candidates()) {
      if (context.json) std::cout << ToJson(candidate) << "\n";
      const v1::CandidateSpec& spec = candidate.spec();
      rows.push_back({candidate.name(), spec.problem(), Printable(spec.label()),
                      Printable(spec.origin().author()), Printable(spec.origin().model())});
    }
    left -= response.candidates_size();
    request.set_page_token(response.next_page_token());
  } while (left > 0 && !request.page_token().empty());
  if (!context.json) std::cout << FormatTable(rows);
  TellOfMore(request.page_token());
  return kExitPassed;
}

// A CUDA source that has no launch plan yet.
absl::StatusOr<std::string> ReadPlainSource(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".cu") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": plans are proposed for CUDA C++, in a file whose name ends in .cu"));
  }
  auto source = ReadFile(path, limits::kSourceBytesMax);
  if (absl::IsNotFound(source.status())) {
    return ErrorWithReason(absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
                           absl::StrCat("there is no file ", path));
  }
  if (!source.ok()) return source.status();
  if (!IsUtf8(*source)) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "SOURCE_NOT_UTF8",
                           absl::StrCat(path, ": save the source as UTF-8"));
  }
  if (HasCandidateComment(*source)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " has a comment /* assay-candidate ... */ already; submit it as it is, "
                     "or remove the comment"));
  }
  return source;
}

// The candidate as it would be submitted.
std::string ProposedJson(const std::string& path, const std::string& source,
                         const PlanProposal& proposal, const v1::Problem& problem) {
  v1::Candidate candidate;
  google::protobuf::TextFormat::ParseFromString(proposal.plan, candidate.mutable_spec());
  candidate.mutable_spec()->set_problem(ProblemId(problem.name()));
  candidate.mutable_spec()->set_language(v1::CUDA_CPP);
  v1::SourceFile& file = *candidate.add_files();
  file.set_path(std::filesystem::path(path).filename().string());
  file.set_content(source);
  return ToJson(candidate);
}

absl::StatusOr<int> RunPropose(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one .cu file"));
  if (!context.arguments.Has("problem")) {
    return absl::InvalidArgumentError(
        "--problem NAME is missing: whose tensors and axes are they?");
  }
  const std::string& path = context.arguments.positional()[0];
  ASSAY_ASSIGN_OR_RETURN(const std::string source, ReadPlainSource(path));
  Connection connection(context.server);
  v1::GetProblemRequest request;
  request.set_name(absl::StrCat("problems/", ProblemId(context.arguments.Get("problem"))));
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.problems().GetProblem(Connection::Context().get(), request, &problem)));
  auto proposal = ProposePlan(source, problem);
  if (!proposal.ok()) return Annotate(proposal.status(), path);
  for (const std::string& note : proposal->notes) {
    std::cerr << "assay: look at this: " << PrintableLine(note) << "\n";
  }
  const std::string whole = proposal->comment + source;
  if (context.arguments.Has("write")) {
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, whole));
  }
  if (context.json) {
    std::cout << ProposedJson(path, whole, *proposal, problem) << "\n";
  } else if (context.arguments.Has("write")) {
    std::cout << Printable(path) << ": the plan of kernel " << proposal->kernel
              << " was written before the source\n";
  } else {
    std::cout << whole;
  }
  return kExitPassed;
}

}  // namespace

std::vector<Command> CandidateCommands() {
  return {
      {.name = "candidates show",
       .usage = "NAME [--json]",
       .help = "Show a candidate and its sources",
       .flags = {},
       .run = RunShow},
      {.name = "candidates list",
       .usage = "[--problem NAME] [--limit N] [--page-token TOKEN] [--json]",
       .help = "List candidates, newest first; 50 unless --limit says otherwise",
       .flags = {.valued = {"problem", "limit", "page-token"}, .switches = {}},
       .run = RunList},
      {.name = "candidates propose",
       .usage = "FILE.cu --problem NAME [--write] [--json]",
       .help = "Print a plain .cu file of one kernel with a launch plan before it; --write puts "
               "it into the file",
       .flags = {.valued = {"problem"}, .switches = {"write"}},
       .run = RunPropose}};
}

}  // namespace assay
