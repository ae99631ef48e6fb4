// One evaluation in the pipeline: its state from lease to outcome. Private to the pipeline.
#ifndef ASSAY_WORKER_AGENT_JUDGEMENT_H_
#define ASSAY_WORKER_AGENT_JUDGEMENT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/internal/v1/runner.pb.h"
#include "kernels/problem.h"
#include "worker/agent/pipeline.h"
#include "worker/measure/protocol.h"

namespace assay {

class Judgement {
 public:
  Judgement(Pipeline* pipeline, const internal::v1::WorkSpec& work, const PipelineHooks& hooks,
            v1::Outcome* outcome);

  // A bad status is the infrastructure's. Afterwards the outcome has a verdict.
  absl::Status Run();
  void FillTimeline(v1::Timeline* timeline) const;
  // Guests that one runner of this evaluation needs: two a workload, within reason.
  int guest_count() const;

 private:
  using Report = internal::v1::RunnerReport;

  // A workload of this evaluation.
  struct Item {
    ResolvedWorkload workload;
    bool selected = false;  // asked for, not only verified along
    bool measure = false;
    bool preflight = false;  // in the emulated driver, before the real device
    // Set as reports come in.
    v1::Verification verification;
    bool verified = false;
    v1::ObservedWork observed;
    std::vector<v1::RunnerSamples> samples;
  };

  // What one runner does with one item.
  struct Task {
    const Item* item = nullptr;
    bool battery = false;
    bool measure = false;
    bool preflight = false;
  };

  // What a runner runs: an artifact, and for a device the plan that launches it.
  struct Subject {
    std::string artifact;
    const v1::CandidateSpec* spec = nullptr;
    const ValueMap* configuration = nullptr;
    const v1::Baseline* baseline = nullptr;  // whose libraries it may load
  };

  absl::Status RunSteps();
  // The steps. False: the outcome has its verdict, go no further.
  absl::StatusOr<bool> Prepare();
  absl::StatusOr<bool> BuildAll();
  absl::StatusOr<bool> RunCandidate();
  absl::StatusOr<bool> RunPairs();
  absl::StatusOr<bool> RunPair(Item* item, bool candidate_first);
  absl::StatusOr<bool> MeasureBaselines();
  absl::Status Conclude();

  absl::StatusOr<std::unique_ptr<Report>> RunRunner(const Subject& subject,
                                                    const std::vector<Task>& tasks);
  // What everything that is drawn follows from. A replay brings its own; else it is drawn at the
  // first call, after the builds.
  uint64_t Nonce();
  void FillDevice(const Subject& subject, internal::v1::DeviceTarget* device) const;
  Subject CandidateSubject() const {
    return {candidate_.artifact_path, &work_.candidate().spec(), &configuration_};
  }
  Subject BaselineSubject() const {
    return {paired_baseline_.artifact_path, &work_.baseline_candidate().spec(),
            &baseline_configuration_};
  }
  // Takes in a report of the candidate. False when it decided the verdict.
  bool TakeReport(std::unique_ptr<Report> report);
  // The same for something that the candidate is compared with; its faults are the problem's.
  bool TakeBaselineReport(const Report& report, const std::string& name);
  absl::StatusOr<bool> MeasureBaseline(const v1::Baseline& baseline);
  absl::StatusOr<BuildResult> Build(Builder* builder, const BuildRequest& request);
  bool is_emulated() const { return options_.device.has_value() && options_.device->is_emulated; }
  bool is_real_device() const {
    return options_.device.has_value() && !options_.device->is_emulated;
  }
  // Of the candidate's language. False: this worker has none, and the outcome says so.
  bool ChooseBuilder();
  Builder* DeviceBuilder(v1::Language language) const;
  // A workload that would keep an emulated device busy for minutes.
  bool IsTooLargeToEmulate(const ResolvedWorkload& workload, bool named) const;
  absl::Status CheckWanted() const;
  absl::Duration TimeLeft() const;

  void FillResults();
  void FillResult(const Item& item);
  void FillCeiling(const Item& item, v1::WorkloadResult* result) const;
  absl::Status ConfirmImplausible();
  void Inspect();
  void FillEnvironment();
  std::string BaselineKey(const v1::Baseline& baseline, const Item& item) const;

  Pipeline& pipeline_;
  const PipelineOptions& options_;
  const internal::v1::WorkSpec& work_;
  const PipelineHooks& hooks_;
  v1::Outcome& outcome_;
  const v1::Level level_;
  const MeasureProtocol protocol_;
  const absl::Duration start_;
  uint64_t candidate_runners_ = 0;  // started so far, for their nonces
  uint64_t other_runners_ = 0;

  v1::Problem runner_problem_;  // without files; once prepared, under the candidate's contract
  ValueMap configuration_;
  std::vector<Item> items_;  // the selected ones first, in order
  Builder* candidate_builder_ = nullptr;
  ValueMap baseline_configuration_;
  BuildResult candidate_;
  BuildResult reference_;
  BuildResult paired_baseline_;
  std::vector<std::unique_ptr<Report>> reports_;
  std::vector<std::string> missing_baselines_;  // that need a library which this worker lacks

  bool out_of_time_ = false;
  absl::Duration build_time_;
  int64_t verify_ns_ = 0;
  int64_t measure_ns_ = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_JUDGEMENT_H_
