// A context of our own on a real device, with one stream in which everything happens, in order.
//
// Not thread-safe; current on the thread that made it. Only a runner makes one.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_CONTEXT_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/backend/cuda/driver.h"

namespace assay {

// One run of a few launches.
struct DeviceRun {
  // Of the launches, or else of what the device did.
  cuda::CUresult result = cuda::CUDA_SUCCESS;
  bool timed_out = false;  // it still runs
  // The launches waited on the device until all of them were there, so that nothing of the host is
  // timed.
  bool gated = false;
  double event_ns = 0;  // between the events around the launches, by the device's clock
  double wall_ns = 0;   // from their release to their end being seen, by the host's clock
  double late_ns = 0;   // what the device went on working after that end
};

class DeviceContext {
 public:
  // UNAVAILABLE with reason DRIVER_FAILED, DEVICE_NOT_FOUND or DEVICE_TOO_OLD. `driver` is a real
  // one and outlives the context.
  static absl::StatusOr<std::unique_ptr<DeviceContext>> Make(const CudaDriver* driver, int ordinal);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  cuda::CUdevice device() const { return device_; }
  cuda::CUstream stream() const { return stream_; }

  // Puts work into the stream; what is read has arrived when Download returns.
  absl::Status Upload(cuda::CUdeviceptr to, std::span<const std::byte> from);
  absl::Status Fill(cuda::CUdeviceptr to, unsigned char value, size_t bytes);
  absl::Status Download(std::span<std::byte> to, cuda::CUdeviceptr from);
  absl::Status Finish();

  // A hash of the 32-bit words from `data` on that hold `bytes` bytes. Reads them through the L2
  // cache. `data` is a multiple of 4.
  absl::StatusOr<uint64_t> Checksum(cuda::CUdeviceptr data, size_t bytes);

  // Fills the shared memory of every multiprocessor.
  absl::Status FillShared(uint32_t value);

  // Evicts what was set aside in the L2 cache as data that persists.
  absl::Status ResetPersistingCache();

  // Puts other data into the whole L2 cache: writes twice its size, each time another value. Before
  // each run, so that kernels find nothing in the context's own memory that an earlier one left.
  absl::Status FlushCache();

  // Runs what `launch` puts into the stream and waits until it has ended, or for `timeout`. Behind
  // the gate only what was launched before without it: a driver that loads code lazily would wait
  // for the gate.
  absl::StatusOr<DeviceRun> Run(const std::function<cuda::CUresult(cuda::CUstream)>& launch,
                                bool gate, absl::Duration timeout);
  // The same around an empty kernel: the launch floor.
  absl::StatusOr<DeviceRun> RunEmpty(absl::Duration timeout);

  // After a sticky error or a kernel that does not end: nothing is taken down any more, which could
  // wait for ever; the end of the process does it.
  void Lose() { is_lost_ = true; }
  bool is_lost() const { return is_lost_; }

 private:
  explicit DeviceContext(const CudaDriver* driver) : driver_(*driver), cu_(driver->functions()) {}
  absl::Status Open(int ordinal);
  absl::Status LoadHelpers();
  absl::Status MakeFlushBuffer();
  // So that the driver loads nothing while the gate is closed.
  absl::Status LaunchHelpersOnce();
  absl::StatusOr<int> Attribute(cuda::CUdevice_attribute attribute) const;
  cuda::CUresult CloseGate();
  // False when the time is up.
  bool WaitForEnd(absl::Duration timeout, cuda::CUresult* result);

  const CudaDriver& driver_;
  const cuda::DriverFunctions& cu_;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  cuda::CUstream stream_ = nullptr;
  cuda::CUevent begin_ = nullptr;
  cuda::CUevent end_ = nullptr;
  cuda::CUmodule helpers_ = nullptr;
  cuda::CUfunction gate_kernel_ = nullptr;
  cuda::CUfunction empty_kernel_ = nullptr;
  cuda::CUfunction checksum_kernel_ = nullptr;
  cuda::CUfunction fill_shared_kernel_ = nullptr;
  uint32_t* gate_ = nullptr;     // in memory of the host that the device sees: opened, gave up
  cuda::CUdeviceptr flush_ = 0;  // begins with the sum of Checksum
  size_t flush_bytes_ = 0;
  uint32_t flush_value_ = 0;
  uint32_t multiprocessors_ = 1;
  uint32_t shared_bytes_ = 0;  // of one block at most
  bool has_persisting_cache_ = false;
  bool is_lost_ = false;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_CONTEXT_H_
