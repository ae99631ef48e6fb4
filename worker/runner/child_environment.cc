#include "worker/runner/child_environment.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace assay {

ChildEnvironment::ChildEnvironment() {
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) variables_.push_back(absl::StrCat(name, "=", value));
  }
  for (std::string& variable : variables_) pointers_.push_back(variable.data());
  pointers_.push_back(nullptr);
}

}  // namespace assay
