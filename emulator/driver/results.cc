#include "emulator/driver/results.h"

#include "base/cuda/driver_abi.h"

namespace assay::emulator {

using cuda::CUresult;

const char* ResultName(CUresult result) {
  switch (result) {
#define ASSAY_CUDA_NAME(name, number) \
  case cuda::name:                    \
    return #name;
    ASSAY_CUDA_RESULTS(ASSAY_CUDA_NAME)
#undef ASSAY_CUDA_NAME
  }
  return nullptr;
}

const char* ResultText(CUresult result) {
  switch (result) {
    case cuda::CUDA_SUCCESS:
      return "no error";
    case cuda::CUDA_ERROR_INVALID_VALUE:
      return "an argument is out of its range";
    case cuda::CUDA_ERROR_OUT_OF_MEMORY:
      return "not enough memory";
    case cuda::CUDA_ERROR_NOT_INITIALIZED:
      return "cuInit was not called";
    case cuda::CUDA_ERROR_INVALID_DEVICE:
      return "no such device";
    case cuda::CUDA_ERROR_INVALID_IMAGE:
      return "the module image is damaged";
    case cuda::CUDA_ERROR_INVALID_CONTEXT:
      return "no context is current, or the context does not exist";
    case cuda::CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "the image holds no code for this device";
    case cuda::CUDA_ERROR_UNSUPPORTED_LIMIT:
      return "the device does not have this limit";
    case cuda::CUDA_ERROR_INVALID_PTX:
      return "the PTX could not be compiled";
    case cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "the PTX is of a newer version than the driver";
    case cuda::CUDA_ERROR_FILE_NOT_FOUND:
      return "no such file";
    case cuda::CUDA_ERROR_INVALID_HANDLE:
      return "no such object";
    case cuda::CUDA_ERROR_ILLEGAL_STATE:
      return "not possible in the present state";
    case cuda::CUDA_ERROR_NOT_FOUND:
      return "no such name";
    case cuda::CUDA_ERROR_NOT_READY:
      return "not finished yet";
    case cuda::CUDA_ERROR_ILLEGAL_ADDRESS:
      return "a kernel accessed memory that is not its own";
    case cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return "the launch asks for more than the kernel or device can have";
    case cuda::CUDA_ERROR_LAUNCH_TIMEOUT:
      return "a kernel ran too long";
    case cuda::CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "the context was destroyed";
    case cuda::CUDA_ERROR_ASSERT:
      return "an assertion of a kernel failed";
    case cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return "a kernel met an instruction that cannot be executed";
    case cuda::CUDA_ERROR_MISALIGNED_ADDRESS:
      return "a kernel accessed a misaligned address";
    case cuda::CUDA_ERROR_LAUNCH_FAILED:
      return "a kernel failed";
    case cuda::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return "the blocks of a cooperative launch do not fit on the device at once";
    case cuda::CUDA_ERROR_NOT_PERMITTED:
      return "not permitted here";
    case cuda::CUDA_ERROR_NOT_SUPPORTED:
      return "not supported by this device";
    case cuda::CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return "the device has no clusters of this size";
    case cuda::CUDA_ERROR_UNKNOWN:
      return "internal error";
    default:
      // The emulated driver never returns the others.
      return ResultName(result) == nullptr ? nullptr : "an error that only a device has";
  }
}

CUresult ResultOfStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return cuda::CUDA_SUCCESS;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return cuda::CUDA_ERROR_INVALID_VALUE;
    case absl::StatusCode::kNotFound:
      return cuda::CUDA_ERROR_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted:
      return cuda::CUDA_ERROR_OUT_OF_MEMORY;
    case absl::StatusCode::kUnimplemented:
      return cuda::CUDA_ERROR_NOT_SUPPORTED;
    case absl::StatusCode::kFailedPrecondition:
      return cuda::CUDA_ERROR_ILLEGAL_STATE;
    default:
      return cuda::CUDA_ERROR_UNKNOWN;
  }
}

CUresult ResultOfFaults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    switch (fault.kind) {
      case FaultKind::kOutOfBounds:
      case FaultKind::kUseAfterFree:
      case FaultKind::kInputWritten:
        return cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
      case FaultKind::kMisaligned:
        return cuda::CUDA_ERROR_MISALIGNED_ADDRESS;
      case FaultKind::kAssert:
        return cuda::CUDA_ERROR_ASSERT;
      case FaultKind::kInstructionBudget:
      case FaultKind::kTimeBudget:
      case FaultKind::kDeadlock:
        return cuda::CUDA_ERROR_LAUNCH_TIMEOUT;
      case FaultKind::kUnsupported:
        return cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION;
      case FaultKind::kTrap:
      case FaultKind::kDivergentBarrier:
        return cuda::CUDA_ERROR_LAUNCH_FAILED;
      case FaultKind::kNone:
      case FaultKind::kUninitializedRead:
      case FaultKind::kSharedRace:
      case FaultKind::kGlobalRace:
      case FaultKind::kAbsentLane:
      case FaultKind::kMissingAsyncWait:
      case FaultKind::kMismatchedBarrier:
      case FaultKind::kPrintfFlood:
        break;  // A device goes on after these, or need not stop at them.
    }
  }
  return cuda::CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace assay::emulator
