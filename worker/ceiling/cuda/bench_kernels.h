// The microbenchmarks of a GPU: PTX text, and what a launch of it does, exactly.
//
// PTX, because every driver compiles it: a worker needs no compiler to know its ceilings. Pure
// functions; thread-safe.
#ifndef ASSAY_WORKER_CEILING_CUDA_BENCH_KERNELS_H_
#define ASSAY_WORKER_CEILING_CUDA_BENCH_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

// Counted as the emulated device counts: operations and bytes that threads ask for. Multiply and
// add are two operations.
struct BenchWork {
  uint64_t f16_operations = 0;
  uint64_t f32_operations = 0;
  uint64_t f64_operations = 0;
  uint64_t tensor_operations = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;

  uint64_t operations() const {
    return f16_operations + f32_operations + f64_operations + tensor_operations;
  }
  uint64_t bytes() const { return read_bytes + written_bytes; }
};

// Extents of a one-dimensional launch, and how often its loops run.
struct BenchShape {
  uint32_t grid = 1;
  uint32_t block = 32;  // a multiple of 32
  uint32_t rounds = 1;  // of the inner loop
  uint32_t passes = 1;  // over the same memory; 1 for compute
};

// Every kernel is the entry point kBenchEntry with the parameters
//   .u64 a, .u64 b, .u64 c, .u32 rounds, .u32 passes
// Streams: `a` is written, or read where nothing is; `b` and `c` are read. All hold
// StreamArrayBytes bytes; contents do not matter. Compute: `a` is 0.
inline constexpr char kBenchEntry[] = "bench";

struct BenchKernel {
  std::string name;     // as CeilingPoint.kernel: "read", "fma_f32", "mma_f16"; "launch"
  std::string variant;  // what tells kernels of one name apart: "m16n8k16"
  std::string ptx;
  int arrays = 0;                   // that a stream touches
  uint32_t thread_round_bytes = 0;  // of each array, by one thread in one round
  BenchWork thread_round;           // what one thread does in one round of one pass
};

enum class StreamKind { kRead, kWrite, kCopy, kTriad };
inline constexpr StreamKind kStreamKinds[] = {StreamKind::kRead, StreamKind::kWrite,
                                              StreamKind::kCopy, StreamKind::kTriad};
inline constexpr int kStreamVectorBytes[] = {16, 8, 4};
inline constexpr int kStreamUnrolls[] = {4, 1};

// `unroll` accesses of a thread are under way at a time. Every load goes past L1, so that what a
// working set of the L2's size gives is the L2's rate.
BenchKernel StreamBench(StreamKind kind, int vector_bytes, int unroll);

struct ComputeBenches {
  std::vector<BenchKernel> kernels;
  std::vector<std::string> left_out;  // what `arch` has not, or is not measured: "mma_tf32: ..."
};
// Multiply-add chains in registers: f64, f32, f16 in pairs, and tensor cores by mma.sync in the
// largest shapes that `arch` (75, 80, ... 120: compute capability) has.
ComputeBenches ComputeBenchesOf(int arch);

// Does nothing.
BenchKernel EmptyBench();

// Only takes time, and no memory: a round of one warp is some hundred nanoseconds.
BenchKernel DelayBench();

BenchWork WorkOf(const BenchKernel& kernel, const BenchShape& shape);

// Bytes of each array that a launch touches; 0 for compute.
uint64_t StreamArrayBytes(const BenchKernel& kernel, const BenchShape& shape);

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_CUDA_BENCH_KERNELS_H_
