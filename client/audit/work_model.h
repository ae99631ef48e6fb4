// The step of an audit that holds a problem's work model against what an emulated device counted.
#ifndef ASSAY_CLIENT_AUDIT_WORK_MODEL_H_
#define ASSAY_CLIENT_AUDIT_WORK_MODEL_H_

#include <vector>

#include "assay/v1/problem.pb.h"
#include "client/audit/cases.h"

namespace assay {

// No judged device candidate moves fewer bytes than declared, and on no workload is the least work
// of all far from the declared. A candidate may do more than it must, as one does that pads its
// tiles, so only the least of all tells that too little is declared, and only where it decides an
// efficiency that somebody is told. Skipped where nothing was counted.
v1::AuditStep CheckWorkModel(const v1::Problem& problem,
                             const std::vector<AuditCase>& device_cases);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_WORK_MODEL_H_
