// assay candidates show|list
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"
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
            << Printable(candidate.spec().label()) << "\ndigest " << candidate.digest() << "\n";
  for (const v1::SourceFile& file : candidate.files()) {
    std::cout << "\n--- " << Printable(file.path()) << "\n" << Printable(file.content());
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

}  // namespace

std::vector<Command> CandidateCommands() {
  return {{.name = "candidates show",
           .usage = "NAME [--json]",
           .help = "Show a candidate and its sources",
           .flags = {},
           .run = RunShow},
          {.name = "candidates list",
           .usage = "[--problem NAME] [--limit N] [--page-token TOKEN] [--json]",
           .help = "List candidates, newest first; 50 unless --limit says otherwise",
           .flags = {.valued = {"problem", "limit", "page-token"}, .switches = {}},
           .run = RunList}};
}

}  // namespace assay
