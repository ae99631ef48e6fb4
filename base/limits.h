// Every limit of the service in one place. A queue, a loop or a buffer that hostile input can grow
// cites one.
#ifndef ASSAY_BASE_LIMITS_H_
#define ASSAY_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace assay::limits {

// Admission.
inline constexpr size_t kSourceBytesMax = 1 << 20;     // one source file of a candidate
inline constexpr size_t kCandidateBytesMax = 4 << 20;  // all files of a candidate
inline constexpr size_t kCandidateFilesMax = 64;
inline constexpr size_t kProblemBytesMax = 4 << 20;  // problem.textproto and its sources
inline constexpr size_t kNameBytesMax = 64;  // identifiers: axes, tensors, parameters, problems
inline constexpr size_t kRequestIdBytesMax = 64;
inline constexpr size_t kWorkloadsPerEvaluationMax = 64;
inline constexpr size_t kAxesMax = 16;
inline constexpr size_t kTensorsMax = 32;
inline constexpr size_t kExpressionBytesMax = 4096;
inline constexpr int kExpressionDepthMax = 64;
inline constexpr int64_t kTensorBytesMax = int64_t{4} << 30;    // one tensor
inline constexpr int64_t kWorkloadBytesMax = int64_t{8} << 30;  // all tensors of one workload

// API.
inline constexpr size_t kMessageBytesMax = 16 << 20;
inline constexpr size_t kBatchMax = 1000;  // evaluations of one BatchCreate
inline constexpr int kPageSizeDefault = 50;
inline constexpr int kPageSizeMax = 1000;
inline constexpr size_t kFilterBytesMax = 4096;

// Dispatch.
inline constexpr size_t kQueuedEvaluationsMax = 1'000'000;
inline constexpr size_t kWorkersMax = 10'000;
inline constexpr size_t kWatchersMax = 10'000;
inline constexpr int kAttemptsMax = 3;  // infrastructure failures before FAILED
inline constexpr int64_t kLeaseSeconds = 30;
inline constexpr int64_t kLongPollSecondsMax = 60;

// Build and run of candidates.
inline constexpr size_t kArtifactBytesMax = 64 << 20;  // what crosses from the build sandbox
inline constexpr size_t kCompilerOutputBytesMax = 1 << 20;
inline constexpr size_t kGuestOutputBytesMax = 1 << 20;  // stdout and stderr of a candidate
inline constexpr int64_t kBuildSeconds = 120;
inline constexpr int64_t kBuildMemoryBytes = int64_t{2} << 30;
inline constexpr int64_t kGuestMemoryBytes = int64_t{2} << 30;  // beside the tensors
inline constexpr int64_t kCallSeconds = 10;                     // one call of a candidate
inline constexpr int64_t kEvaluationSeconds = 300;              // one attempt, wall time
inline constexpr size_t kSamplesMax = 1000;                     // of one measurement in one runner
inline constexpr size_t kDiagnosticsMax = 50;                   // compile diagnostics kept
inline constexpr size_t kReportBytesMax = 16 << 20;             // runner to worker

// Logs.
inline constexpr size_t kLogValueBytesMax = 512;

}  // namespace assay::limits

#endif  // ASSAY_BASE_LIMITS_H_
