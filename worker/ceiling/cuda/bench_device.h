// A device on which microbenchmarks run, by the CUDA driver API.
#ifndef ASSAY_WORKER_CEILING_CUDA_BENCH_DEVICE_H_
#define ASSAY_WORKER_CEILING_CUDA_BENCH_DEVICE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/cuda/driver.h"
#include "worker/ceiling/cuda/bench_timer.h"

namespace assay {

struct BenchDeviceFacts {
  std::string name;
  int arch = 0;  // compute capability: 80, 90, 120
  int multiprocessors = 0;
  int64_t l2_bytes = 0;  // 0: not told
  int64_t memory_bytes = 0;
  int driver_version = 0;  // of CUDA: 13000 is 13.0
  cuda::CUuuid uuid = {};
  std::string pci_bus_id;  // empty: not told
};

// Owns a context, which is current on the thread that opened it: not thread-safe, and for that
// thread alone. Arrays stay between calls and only grow.
class BenchDevice : public BenchTimer {
 public:
  // `driver` outlives the device.
  static absl::StatusOr<std::unique_ptr<BenchDevice>> Open(const CudaDriver* driver, int ordinal);
  ~BenchDevice() override;

  const BenchDeviceFacts& facts() const { return facts_; }

  // One launch, and waits for it.
  absl::Status Run(const BenchKernel& kernel, const BenchShape& shape);

  // FAILED_PRECONDITION on an emulated device, which has no times.
  absl::StatusOr<std::vector<double>> Time(const BenchKernel& kernel, const BenchShape& shape,
                                           int launches, int samples) override;

 private:
  struct Loaded {
    cuda::CUfunction function = nullptr;
    int arrays = 0;  // that it is given
  };

  explicit BenchDevice(const CudaDriver* driver) : driver_(*driver), cu_(driver->functions()) {}
  absl::Status Start(int ordinal);
  absl::Status ReadFacts(cuda::CUdevice device);
  absl::StatusOr<Loaded> Load(const BenchKernel& kernel);
  absl::Status Reserve(uint64_t array_bytes, int arrays);
  absl::Status Launch(const Loaded& kernel, const BenchShape& shape);
  absl::StatusOr<double> TimeOnce(const Loaded& delay, const Loaded& kernel,
                                  const BenchShape& shape, int launches);

  const CudaDriver& driver_;
  const cuda::DriverFunctions& cu_;
  BenchDeviceFacts facts_;
  cuda::CUcontext context_ = nullptr;
  cuda::CUevent start_ = nullptr;
  cuda::CUevent stop_ = nullptr;
  std::map<std::string, Loaded> loaded_;          // by PTX
  std::array<cuda::CUdeviceptr, 3> arrays_ = {};  // a, b, c; 0: none yet
  std::array<uint64_t, 3> array_bytes_ = {};
};

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_CUDA_BENCH_DEVICE_H_
