// What right outputs tell of the precision that a candidate computes in: how far they are off, how
// many of their bits are in use, and whether sums come out exact that are exact in the contract's
// types. Evidence for a detector; the tolerance alone decides what is right.
//
// Not thread-safe. Blocking only as long as a pass over the outputs takes.
#ifndef ASSAY_WORKER_VERIFY_PRECISION_H_
#define ASSAY_WORKER_VERIFY_PRECISION_H_

#include <string>
#include <string_view>

#include "kernels/problem.h"
#include "worker/verify/loaded_work.h"

namespace assay {

namespace internal::v1 {
class RunnerWorkloadReport;
}

// Adds the evidence of the outputs as they stand, which are right for case `input_case` of the
// battery. Only "x1", as the first case of the report, and "exact_integers" have any.
void GatherPrecision(const std::string& input_case, LoadedWork* work,
                     internal::v1::RunnerWorkloadReport* report);

// How many trailing mantissa bits of output `tensor` honest arithmetic may leave zero in every
// element: as many as the coarsest operands that the contracts of `problem` allow lack, since an
// output may be an operand. 0 where none may be rounded.
int HonestZeroBitsMax(const v1::Problem& problem, std::string_view tensor);

// A bound for the relative L2 error of honest arithmetic under the only contract of `problem` on
// nominal inputs. With u the unit roundoff of the accumulator and K the longest sum that the shapes
// allow: u (8 + 8 sqrt K), of which measured honest kernels need a third at most; eight times that
// where functions may be approximate; and what rounded operands and outputs add. Infinite without a
// contract.
double HonestErrorMax(const v1::Problem& problem, const ResolvedWorkload& workload);

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_PRECISION_H_
