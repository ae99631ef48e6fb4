#include "worker/sandbox/cgroup_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace assay {

std::string MachineCgroupTree::Read(const std::string& path) const {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "";
  std::string text(65536, '\0');
  const ssize_t got = read(fd.get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

int MachineCgroupTree::Write(const std::string& path, const std::string& text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

int MachineCgroupTree::Make(const std::string& path) {
  return mkdir(path.c_str(), 0755) == 0 ? 0 : errno;
}

int MachineCgroupTree::Remove(const std::string& path) {
  return rmdir(path.c_str()) == 0 ? 0 : errno;
}

bool MachineCgroupTree::IsDirectory(const std::string& path) const {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool MachineCgroupTree::IsDelegated(const std::string& path) const {
  // As systemd marks it; the first name is readable by root alone, the second is newer.
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    char value = 0;
    if (getxattr(path.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

}  // namespace assay
