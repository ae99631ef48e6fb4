// By how much a rejected answer misses a problem's tolerances. Functions are thread-safe.
#ifndef ASSAY_CLIENT_AUDIT_MARGINS_H_
#define ASSAY_CLIENT_AUDIT_MARGINS_H_

#include <map>
#include <string>

#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"

namespace assay {

// By output, how many tolerances it is off by in the worst workload that was judged; infinity where
// no number says it. Outputs that nobody compared have none.
std::map<std::string, double> Margins(const v1::Problem& problem, const v1::Outcome& outcome);

// Of the output that is off most; infinity where nothing was compared.
double Margin(const v1::Problem& problem, const v1::Outcome& outcome);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_MARGINS_H_
