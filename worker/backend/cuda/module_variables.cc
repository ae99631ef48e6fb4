#include "worker/backend/cuda/module_variables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "worker/backend/cuda/ptx_variables.h"

namespace assay {

using internal::v1::GuestFault;

absl::StatusOr<std::string> ModuleVariables::Find(const std::vector<std::string>& names,
                                                  cuda::CUmodule module) {
  images_.clear();
  sizes_.clear();
  for (const std::string& name : names) {
    Image image;
    size_t bytes = 0;
    const cuda::CUresult found = context_.driver().functions().cuModuleGetGlobal(
        &image.address, &bytes, module, name.c_str());
    if (found == cuda::CUDA_ERROR_NOT_FOUND) return name;
    ASSAY_RETURN_IF_ERROR(context_.driver().Check(found, "cuModuleGetGlobal"));
    images_.push_back(std::move(image));
    sizes_.push_back(bytes);
  }
  return std::string();
}

absl::StatusOr<std::optional<GuestEnd>> ModuleVariables::TakeImages() {
  if (sizes_.size() > limits::kModuleVariablesMax) {
    return MakeEnd(GuestFault::MEMORY_LIMIT,
                   absl::StrCat(sizes_.size(), " module-scope variables; at most ",
                                limits::kModuleVariablesMax, " are put back between calls"));
  }
  size_t total = 0;
  for (const size_t bytes : sizes_) {
    total += bytes;
    if (bytes > limits::kModuleVariableBytesMax || total > limits::kModuleVariableBytesMax) {
      return MakeEnd(GuestFault::MEMORY_LIMIT,
                     absl::StrCat("module-scope variables take more than ",
                                  limits::kModuleVariableBytesMax >> 20,
                                  " MiB; give large data to the kernel as a workspace"));
    }
  }
  for (size_t i = 0; i < images_.size(); ++i) {
    images_[i].bytes.resize(sizes_[i]);
    ASSAY_RETURN_IF_ERROR(context_.Download(images_[i].bytes, images_[i].address));
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<GuestEnd>> ModuleVariables::Load(const std::string& ptx,
                                                              DeviceProgram* program) {
  const std::vector<PtxVariable> variables = ScanPtxVariables(ptx);
  std::vector<std::string> names;
  for (const PtxVariable& variable : variables) names.push_back(variable.name);
  ASSAY_ASSIGN_OR_RETURN(std::optional<GuestEnd> end, program->LoadModule(ptx));
  if (end.has_value()) return end;
  ASSAY_ASSIGN_OR_RETURN(std::string hidden, Find(names, program->module()));
  if (!hidden.empty()) {
    ASSAY_ASSIGN_OR_RETURN(end, program->LoadModule(MakeVariablesVisible(ptx, variables)));
    if (end.has_value()) return end;
    ASSAY_ASSIGN_OR_RETURN(hidden, Find(names, program->module()));
  }
  if (!hidden.empty()) {
    return MakeEnd(GuestFault::LOAD_FAILED,
                   absl::StrCat("variable ", hidden,
                                " cannot be reached by name, and so not be put back between calls; "
                                "declare it at module scope"));
  }
  return TakeImages();
}

absl::Status ModuleVariables::PutBack() {
  for (const Image& image : images_) {
    ASSAY_RETURN_IF_ERROR(context_.Upload(image.address, image.bytes));
  }
  return absl::OkStatus();
}

}  // namespace assay
