#include "emulator/report.h"

namespace assay::emulator {

const char* FaultName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kNone:
      return "NONE";
    case FaultKind::kOutOfBounds:
      return "OUT_OF_BOUNDS";
    case FaultKind::kMisaligned:
      return "MISALIGNED";
    case FaultKind::kUseAfterFree:
      return "USE_AFTER_FREE";
    case FaultKind::kUninitializedRead:
      return "UNINITIALIZED_READ";
    case FaultKind::kInputWritten:
      return "INPUT_WRITTEN";
    case FaultKind::kSharedRace:
      return "SHARED_RACE";
    case FaultKind::kGlobalRace:
      return "GLOBAL_RACE";
    case FaultKind::kDivergentBarrier:
      return "DIVERGENT_BARRIER";
    case FaultKind::kMismatchedBarrier:
      return "MISMATCHED_BARRIER";
    case FaultKind::kDeadlock:
      return "DEADLOCK";
    case FaultKind::kAbsentLane:
      return "ABSENT_LANE";
    case FaultKind::kMissingAsyncWait:
      return "MISSING_ASYNC_WAIT";
    case FaultKind::kInstructionBudget:
      return "INSTRUCTION_BUDGET";
    case FaultKind::kTrap:
      return "TRAP";
    case FaultKind::kAssert:
      return "ASSERT";
    case FaultKind::kPrintfFlood:
      return "PRINTF_FLOOD";
    case FaultKind::kUnsupported:
      return "UNSUPPORTED";
    case FaultKind::kTimeBudget:
      return "TIME_BUDGET";
  }
  return "UNKNOWN";
}

void Counters::Add(const Counters& o) {
  warp_instructions += o.warp_instructions;
  thread_instructions += o.thread_instructions;
  f16_flops += o.f16_flops;
  f32_flops += o.f32_flops;
  f64_flops += o.f64_flops;
  tensor_flops += o.tensor_flops;
  special_operations += o.special_operations;
  integer_operations += o.integer_operations;
  global_load_bytes += o.global_load_bytes;
  global_store_bytes += o.global_store_bytes;
  shared_load_bytes += o.shared_load_bytes;
  shared_store_bytes += o.shared_store_bytes;
  local_bytes += o.local_bytes;
  atomic_operations += o.atomic_operations;
  global_sectors += o.global_sectors;
  global_sectors_least += o.global_sectors_least;
  shared_accesses += o.shared_accesses;
  shared_bank_conflicts += o.shared_bank_conflicts;
  branches += o.branches;
  divergent_branches += o.divergent_branches;
  barriers += o.barriers;
}

}  // namespace assay::emulator
