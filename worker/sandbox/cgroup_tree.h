// The files of control groups as the kernel answers for them. Tests put a kernel of their own here.
#ifndef ASSAY_WORKER_SANDBOX_CGROUP_TREE_H_
#define ASSAY_WORKER_SANDBOX_CGROUP_TREE_H_

#include <string>

namespace assay {

// Paths are absolute. Errors are errno, 0 for none.
class CgroupTree {
 public:
  virtual ~CgroupTree() = default;
  // "" when it cannot be read.
  virtual std::string Read(const std::string& path) const = 0;
  virtual int Write(const std::string& path, const std::string& text) = 0;
  virtual int Make(const std::string& path) = 0;
  virtual int Remove(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) const = 0;
  // Whether the service manager has handed the group to this service for its own use.
  virtual bool IsDelegated(const std::string& path) const = 0;
};

// Those of this machine. Thread-safe.
class MachineCgroupTree : public CgroupTree {
 public:
  std::string Read(const std::string& path) const override;
  int Write(const std::string& path, const std::string& text) override;
  int Make(const std::string& path) override;
  int Remove(const std::string& path) override;
  bool IsDirectory(const std::string& path) const override;
  bool IsDelegated(const std::string& path) const override;
};

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_CGROUP_TREE_H_
