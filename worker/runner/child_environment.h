// The environment of the worker's own programs: empty but for what says which GPU a number names,
// so that `--device cuda:1` is the one that the operator's tools call 1.
//
// Immutable; thread-safe.
#ifndef ASSAY_WORKER_RUNNER_CHILD_ENVIRONMENT_H_
#define ASSAY_WORKER_RUNNER_CHILD_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace assay {

class ChildEnvironment {
 public:
  // CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER of this process, as far as they are set.
  ChildEnvironment();
  ChildEnvironment(const ChildEnvironment&) = delete;

  // As posix_spawn takes it. Valid as long as this lives.
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> variables_;
  std::vector<char*> pointers_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_CHILD_ENVIRONMENT_H_
