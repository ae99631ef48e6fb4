#include "worker/agent/pipeline.h"

#include <utility>

#include "worker/agent/judgement.h"

namespace assay {

Pipeline::Pipeline(PipelineOptions options)
    : options_(std::move(options)), detectors_(AllDetectors()) {}

Pipeline::~Pipeline() = default;

absl::Status Pipeline::Judge(const internal::v1::WorkSpec& work, const PipelineHooks& hooks,
                             v1::Outcome* outcome, v1::Timeline* timeline) {
  is_device_suspect_ = false;
  Judgement judgement(this, work, hooks, outcome);
  const absl::Status status = judgement.Run();
  judgement.FillTimeline(timeline);
  options_.runners->Refill(judgement.guest_count());
  return status;
}

}  // namespace assay
