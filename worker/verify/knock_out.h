// Which launches of a plan do nothing: each is left out once, and the outputs are looked at. For
// candidates on an emulated device.
#ifndef ASSAY_WORKER_VERIFY_KNOCK_OUT_H_
#define ASSAY_WORKER_VERIFY_KNOCK_OUT_H_

#include "absl/status/statusor.h"
#include "worker/verify/dependence.h"
#include "worker/verify/loaded_work.h"

namespace assay {

// On the content presented last, whose output was right. Tells `report` of each launch without
// which every output has the same bits, also at a second call in a row that finds the variables as
// the first one left them: so a launch that prepares them, before or after the others, is none.
// What a check finds while a launch is missing is no fault. Looks at nothing where the plan has one
// launch, and at the first launches alone where a call is dear: at as many as two million
// instructions of warps are enough for, so at none where one call takes more.
absl::StatusOr<Step> FindIdleLaunches(LoadedWork* work, const PresentedCase& presented,
                                      internal::v1::RunnerWorkloadReport* report);

// On the content of a further case, whose output was right: takes back those of `report` that this
// content needs, as it does a launch for ties, for zeros or for what is left over.
absl::StatusOr<Step> ConfirmIdleLaunches(LoadedWork* work,
                                         internal::v1::RunnerWorkloadReport* report);

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_KNOCK_OUT_H_
