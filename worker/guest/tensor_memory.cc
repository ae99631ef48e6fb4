#include "worker/guest/tensor_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "worker/guest/guest_protocol.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace assay {
namespace {

constexpr size_t kLineBytes = 64;

std::byte CanaryByte(uint64_t seed, size_t index) {
  return static_cast<std::byte>(MixBits(seed + (index / 8) * kGoldenGamma) >> (8 * (index % 8)));
}

absl::Status Reserve(int fd, size_t bytes) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return ErrnoError(errno, "ftruncate");
  // Now rather than at the first touch, and on this process's account rather than the guest's.
  int error;
  do {
    error = fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0)
    return ErrnoError(error, absl::StrCat("memory for a tensor of ", bytes, " bytes"));
  return absl::OkStatus();
}

// A descriptor of the same file that allows only reading.
absl::StatusOr<UniqueFd> ReopenReadOnly(int fd) {
  // Readable by its owner only: the guest has another uid where the machine allows it, and nobody
  // can open the file for writing again.
  if (fchmod(fd, 0400) != 0) return ErrnoError(errno, "fchmod");
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  UniqueFd reopened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reopened.valid()) return ErrnoError(errno, absl::StrCat("open ", path));
  return reopened;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorMemory>> TensorMemory::Create(size_t bytes, bool writable) {
  UniqueFd fd(memfd_create("assay-tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoError(errno, "memfd_create");
  std::unique_ptr<TensorMemory> memory(new TensorMemory);
  memory->bytes_ = bytes;
  memory->writable_ = writable;
  memory->offset_ = TensorOffset(bytes);
  memory->mapping_bytes_ = TensorFileBytes(bytes);
  memory->seed_ = SecureRandom64();
  ASSAY_RETURN_IF_ERROR(Reserve(fd.get(), memory->mapping_bytes_));
  void* view = mmap(nullptr, memory->mapping_bytes_, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (view == MAP_FAILED) return ErrnoError(errno, "mmap of a tensor");
  memory->mapping_ = static_cast<std::byte*>(view);
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  // The view above stays writable; nobody can make another.
  if (!writable) seals |= F_SEAL_FUTURE_WRITE;
  if (fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return ErrnoError(errno, "sealing a tensor");
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0) return ErrnoError(errno, "sealing a tensor");
  if (writable) {
    memory->guest_fd_ = std::move(fd);
  } else {
    ASSAY_ASSIGN_OR_RETURN(memory->guest_fd_, ReopenReadOnly(fd.get()));
  }
  memory->WriteCanaries();
  return memory;
}

TensorMemory::~TensorMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void TensorMemory::Touch(size_t bytes) {
  auto* begin = reinterpret_cast<volatile char*>(mapping_ + offset_);
  const size_t start = (bytes_ - std::min(bytes, bytes_)) / kLineBytes * kLineBytes;
  for (size_t at = start; at < bytes_; at += kLineBytes) {
    const char value = begin[at];
    if (writable_) begin[at] = value;
  }
}

void TensorMemory::Flush() const {
#if defined(__x86_64__)
  for (size_t at = 0; at < bytes_; at += kLineBytes) _mm_clflush(mapping_ + offset_ + at);
  _mm_mfence();
#endif
}

void TensorMemory::WriteCanaries() {
  for (size_t i = 0; i < offset_; ++i) mapping_[i] = CanaryByte(seed_, i);
  for (size_t i = offset_ + bytes_; i < mapping_bytes_; ++i) mapping_[i] = CanaryByte(seed_, i);
}

std::optional<int64_t> TensorMemory::BrokenCanary() const {
  const auto broken = [&](size_t i) { return mapping_[i] != CanaryByte(seed_, i); };
  for (size_t i = offset_; i-- > 0;) {
    if (broken(i)) return static_cast<int64_t>(i) - static_cast<int64_t>(offset_);
  }
  for (size_t i = offset_ + bytes_; i < mapping_bytes_; ++i) {
    if (broken(i)) return static_cast<int64_t>(i - offset_);
  }
  return std::nullopt;
}

std::vector<size_t> BytesToTouch(std::span<const size_t> tensor_bytes, size_t cache_bytes) {
  std::vector<size_t> touched(tensor_bytes.size());
  size_t left = 2 * cache_bytes;
  for (size_t i = tensor_bytes.size(); i-- > 0;) {
    touched[i] = std::min(tensor_bytes[i], left);
    left -= touched[i];
  }
  return touched;
}

}  // namespace assay
