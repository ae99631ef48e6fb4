// What PTX text declares of its kernels, for launch plans. A scan, no parser: whether the text is
// right is for the driver to say.
#ifndef ASSAY_WORKER_BACKEND_CUDA_PTX_SIGNATURE_H_
#define ASSAY_WORKER_BACKEND_CUDA_PTX_SIGNATURE_H_

#include <string_view>
#include <vector>

#include "kernels/plan/plan.h"

namespace assay {

// Every `.entry`, in order; without static shared memory, which the driver knows. Takes time linear
// in the text.
std::vector<KernelSignature> ScanPtxKernels(std::string_view ptx);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_PTX_SIGNATURE_H_
