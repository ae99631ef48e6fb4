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
inline constexpr size_t kPathBytesMax = 256;   // of a source file
inline constexpr size_t kTextBytesMax = 8192;  // free text: summaries, arithmetic, origins
inline constexpr size_t kWorkloadsPerEvaluationMax = 64;
inline constexpr size_t kAxesMax = 16;
inline constexpr size_t kTensorsMax = 32;
inline constexpr size_t kDimensionsMax = 8;  // of one tensor
// Constraints, transforms, input cases and baselines of a problem or constraints of a candidate.
inline constexpr size_t kDeclarationsMax = 64;
inline constexpr size_t kParametersMax = 32;                  // of a tuning space
inline constexpr size_t kParameterValuesMax = 1024;           // of one parameter
inline constexpr int64_t kConfigurationStepsMax = 1'000'000;  // search for the first configuration
inline constexpr size_t kSpaceNodesMax = size_t{1} << 22;     // of an opened tuning space
inline constexpr size_t kSpaceEdgesMax = size_t{1} << 24;     // of it
inline constexpr size_t kCompileOptionsMax = 32;
inline constexpr size_t kCompileOptionBytesMax = 256;
inline constexpr size_t kLaunchesMax = 64;
inline constexpr size_t kLaunchArgumentsMax = 64;
inline constexpr size_t kWorkspacesMax = 16;
inline constexpr int64_t kPlanWorkspaceBytesMax = int64_t{4} << 30;  // all workspaces of one plan
inline constexpr size_t kCandidateFolderEntriesMax = 1024;  // looked at while reading a folder
inline constexpr size_t kCandidateFolderDepthMax = 8;
inline constexpr size_t kExpressionBytesMax = 4096;
inline constexpr int kExpressionDepthMax = 64;
inline constexpr size_t kModuleVariableBytesMax = 64 << 20;     // of one device-tier module
inline constexpr size_t kModuleVariablesMax = 4096;             // of it
inline constexpr int64_t kTensorBytesMax = int64_t{4} << 30;    // one tensor
inline constexpr int64_t kWorkloadBytesMax = int64_t{8} << 30;  // all tensors of one workload

// API.
inline constexpr size_t kMessageBytesMax = 16 << 20;
inline constexpr size_t kBatchMax = 1000;  // evaluations of one BatchCreate
inline constexpr int kPageSizeDefault = 50;
inline constexpr int kPageSizeMax = 1000;
inline constexpr size_t kFilterBytesMax = 4096;
inline constexpr int kPriorityMax = 100;         // and its negative
inline constexpr int kPairCountMax = 64;         // pairs of one workload of a PAIRED evaluation
inline constexpr size_t kReadsQueuedMax = 4096;  // reads that wait for a reader thread
inline constexpr size_t kWritesInFlightMax = 32'768;  // accepted by a handler, not durable yet
inline constexpr size_t kWriteBytesInFlightMax = 256 << 20;
inline constexpr size_t kCandidateCacheMax = 4096;  // candidates without files, in memory
inline constexpr size_t kInlineAdmissionBytesMax = 256 << 10;  // larger ones leave the RPC thread

// Access.
inline constexpr size_t kTokensMax = 10'000;         // ever created: names are not used twice
inline constexpr size_t kPemBytesMax = 1 << 20;      // a file of certificates or a key
inline constexpr size_t kTokenBytesMax = 256;        // of an authorization that is looked at
inline constexpr size_t kAccessEventsMax = 100'000;  // kept of acts, and as many of refusals
inline constexpr size_t kAccessTextBytesMax = 128;   // of a peer or resource in an event
inline constexpr size_t kAccessAddressesMax = 4096;  // callers without access that are remembered
inline constexpr size_t kAccessRecordsWaiting =
    256;  // refusals not durable yet; more are counted only
// Of a token that names none, and at most.
inline constexpr int kTokenRequestsPerSecond = 100;
inline constexpr int kTokenRequestsBurst = 500;
inline constexpr int kTokenUnfinishedEvaluations = 20'000;
inline constexpr size_t kTokenWatchersMax = 1'000;  // open streams of one
// New candidates and evaluations of one, in the long run and at once: a gigabyte in an hour.
inline constexpr size_t kTokenCandidateBytesPerSecond = 256 << 10;
inline constexpr size_t kTokenCandidateBytesBurst = size_t{1} << 30;
inline constexpr int kTokenLimitMax = 1'000'000;
// Refused calls a second and at once of one address.
inline constexpr int kRefusedCallsPerSecond = 5;
inline constexpr int kRefusedCallsBurst = 50;

// Dispatch.
inline constexpr size_t kQueuedEvaluationsMax = 1'000'000;
inline constexpr size_t kWorkersMax = 10'000;
inline constexpr size_t kWatchersMax = 10'000;
inline constexpr int kAttemptsMax = 3;  // infrastructure failures before FAILED
inline constexpr int64_t kLeaseSeconds = 30;
inline constexpr int64_t kLongPollSecondsMax = 60;
inline constexpr int kLeasesPerWorkerMax = 256;
inline constexpr size_t kDevicesPerWorkerMax = 64;
inline constexpr size_t kRetryScanMax = 64;         // failed items looked at for one grant
inline constexpr size_t kWaitingNotesMax = 10'000;  // notices of a waiting reason to come

// Build and run of candidates.
inline constexpr size_t kArtifactBytesMax = 64 << 20;  // what crosses from the build sandbox
inline constexpr size_t kCompilerOutputBytesMax = 1 << 20;
inline constexpr int64_t kBuildCacheBytesMax = int64_t{4} << 30;  // artifacts kept by a worker
inline constexpr size_t kPrecompiledHeaderBytesMax = 128 << 20;   // one of NVRTC's
inline constexpr int64_t kPrecompiledHeaderCacheBytesMax = int64_t{1} << 30;
inline constexpr size_t kPrecompiledHeaderSetsMax = 256;  // of which a worker remembers anything
inline constexpr size_t kHoistedHeadersMax = 16;          // in one precompiled header
inline constexpr size_t kKernelResourcesMax = 256;        // entry points of one report
inline constexpr size_t kGuestOutputBytesMax = 1 << 20;   // stdout and stderr of a candidate
inline constexpr int64_t kBuildSeconds = 120;
inline constexpr int64_t kBuildMemoryBytes = int64_t{2} << 30;
inline constexpr int64_t kGuestMemoryBytes = int64_t{2} << 30;  // beside the tensors
inline constexpr int64_t kCallSeconds = 10;                     // one call of a candidate
inline constexpr int64_t kEvaluationSeconds = 300;              // one attempt, wall time
// A runner that shows no sign of life for so long hangs. Above what one step takes at most: setting
// up or arming a guest (60 s each), a call of the reference (3 x kCallSeconds, in the background
// kBackgroundPatience times that).
inline constexpr int64_t kRunnerSilentSeconds = 150;
// Times as long a guest may take that runs in the background, where it waits for cores.
inline constexpr int kBackgroundPatience = 4;
inline constexpr size_t kSamplesMax = 1000;          // of one measurement in one runner
inline constexpr size_t kDiagnosticsMax = 50;        // compile diagnostics kept
inline constexpr size_t kReportBytesMax = 16 << 20;  // runner to worker

// Store: what waits for the writer, and what one transaction takes.
inline constexpr size_t kStoreQueueOperationsMax = 65'536;
inline constexpr size_t kStoreQueueBytesMax = size_t{256} << 20;
inline constexpr size_t kStoreGroupOperationsMax = 1024;
inline constexpr size_t kStoreGroupRowsMax = 4096;

// Logs.
inline constexpr size_t kLogValueBytesMax = 512;

}  // namespace assay::limits

#endif  // ASSAY_BASE_LIMITS_H_
