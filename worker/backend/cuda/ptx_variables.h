// The variables in global memory that PTX text declares: state that outlives a call.
//
// A scan, no parser: whether the text is right is for the driver to say. Pure.
#ifndef ASSAY_WORKER_BACKEND_CUDA_PTX_VARIABLES_H_
#define ASSAY_WORKER_BACKEND_CUDA_PTX_VARIABLES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct PtxVariable {
  std::string name;
  size_t at = 0;             // of its declaration's `.global` in the text
  bool has_linkage = false;  // .visible, .extern, .weak or .common stands before it
  bool in_function = false;  // where no name reaches it
};

// Every `.global` variable, in order, but textures, samplers and surfaces, which hold nothing
// writable. Takes time linear in the text.
std::vector<PtxVariable> ScanPtxVariables(std::string_view ptx);

// The text with `.visible` before every declaration at module scope that has no linkage: a driver
// finds by name what is visible.
std::string MakeVariablesVisible(std::string_view ptx, const std::vector<PtxVariable>& variables);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_PTX_VARIABLES_H_
