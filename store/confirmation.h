// The second run of a result that would rank first: when one is made, what it is, and what it says
// of the first. Pure functions; thread-safe. Every implementation of Store applies these inside its
// transaction.
#ifndef ASSAY_STORE_CONFIRMATION_H_
#define ASSAY_STORE_CONFIRMATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "assay/v1/evaluation.pb.h"

namespace assay {

// What is known of a ranked result. Stored as these numbers; see Store::Leaderboard.
enum class Standing : int {
  kOpen = 0,       // no second run says anything of it
  kOlder = 1,      // ranked before there were second runs
  kConfirmed = 3,  // a second run agrees
};

// False: a replay or a second run, which never rank.
bool CountsForRanks(const v1::Evaluation& evaluation);

// Of the second run of "evaluations/{id}". One name for one evaluation: there is never another.
std::string ConfirmationName(std::string_view evaluation);

// The second run of `first`, QUEUED, on the exact class that the first ran on.
v1::Evaluation MakeConfirmation(const v1::Evaluation& first, std::string_view device_class,
                                absl::Time time);

enum class Agreement {
  kUnknown,      // the second run says nothing of the candidate here
  kAgrees,       // not slower than noise explains
  kContradicts,  // it did not pass, is suspect, or is much slower
};
struct WorkloadAgreement {
  std::string workload;
  Agreement agreement = Agreement::kUnknown;
  double first_ns = 0;
  double second_ns = 0;
};
// One for each measured workload of `first`, in order. A second run agrees when its median is at
// most 5 % or five handshakes above the first, or when the two intervals of quartiles and of the
// runners' medians overlap. A faster one always agrees.
std::vector<WorkloadAgreement> CompareRuns(const v1::Outcome& first, const v1::Outcome& second);

// For the first run's message; empty when nothing contradicts.
std::string DisputeNote(std::string_view confirmation, const v1::Outcome& second,
                        const std::vector<WorkloadAgreement>& agreements);

// For the first run's message, when its second run has come to an end that says nothing of it: a
// failure, a cancellation or a verdict that blames something else. Empty otherwise.
std::string OpenNote(const v1::Evaluation& second,
                     const std::vector<WorkloadAgreement>& agreements);

}  // namespace assay

#endif  // ASSAY_STORE_CONFIRMATION_H_
