#include "server/services/identity.h"

#include <map>
#include <tuple>

#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/digest.h"
#include "google/protobuf/map.h"

namespace assay {
namespace {

// Map fields iterate in no fixed order, so they are digested sorted.
void AddMap(const google::protobuf::Map<std::string, int64_t>& map, DigestBuilder* digest) {
  const std::map<std::string, int64_t> sorted(map.begin(), map.end());
  digest->Add(static_cast<int64_t>(sorted.size()));
  for (const auto& [key, value] : sorted) digest->Add(key).Add(value);
}

// The order of workloads counts: it is the order of the results.
void AddSelectors(const v1::Evaluation& evaluation, DigestBuilder* digest) {
  digest->Add(static_cast<int64_t>(evaluation.workloads_size()));
  for (const v1::WorkloadSelector& selector : evaluation.workloads()) {
    digest->Add(selector.name());
    AddMap(selector.axes(), digest);
  }
}

void AddContent(const v1::Evaluation& evaluation, DigestBuilder* digest) {
  digest->Add(evaluation.problem()).Add(evaluation.candidate());
  AddMap(evaluation.configuration(), digest);
  digest->Add(static_cast<int64_t>(evaluation.level()));
  digest->Add(evaluation.baseline_candidate());
  digest->Add(static_cast<int64_t>(evaluation.pair_count()));
}

bool IsNewer(const google::protobuf::Timestamp& a, const google::protobuf::Timestamp& b) {
  return std::tuple(a.seconds(), a.nanos()) > std::tuple(b.seconds(), b.nanos());
}

}  // namespace

bool DeviceMatches(std::string_view requested, const v1::Device& device) {
  return requested == device.kind() || requested == device.device_class();
}

std::string EvaluationIdentity(const v1::Evaluation& evaluation, const v1::Problem& problem,
                               const v1::Environment& environment, std::string_view device_class) {
  if (environment.harness_version().empty() || environment.compiler().empty() ||
      environment.instruction_set().empty() || device_class.empty() || problem.digest().empty()) {
    return "";
  }
  if (IsNewer(problem.create_time(), evaluation.create_time())) return "";
  DigestBuilder digest;
  digest.Add("assay.identity.v1");
  AddContent(evaluation, &digest);
  if (evaluation.workloads().empty()) {
    // All workloads, spelled out, are the same evaluation.
    digest.Add(static_cast<int64_t>(problem.workloads_size()));
    for (const v1::Workload& workload : problem.workloads()) {
      digest.Add(workload.name()).Add(int64_t{0});
    }
  } else {
    AddSelectors(evaluation, &digest);
  }
  digest.Add(problem.digest()).Add(static_cast<int64_t>(problem.version()));
  digest.Add(environment.harness_version())
      .Add(environment.compiler())
      .Add(environment.instruction_set())
      .Add(device_class);
  return digest.Finish();
}

std::string RequestDigest(const v1::Evaluation& evaluation, bool allow_stored_answer) {
  DigestBuilder digest;
  digest.Add("assay.request.v1");
  AddContent(evaluation, &digest);
  AddSelectors(evaluation, &digest);
  digest.Add(evaluation.device_class())
      .Add(static_cast<int64_t>(evaluation.priority()))
      .Add(evaluation.candidate_label())
      .Add(static_cast<int64_t>(allow_stored_answer));
  if (!evaluation.replay_of().empty()) digest.Add(evaluation.replay_of());
  return digest.Finish();
}

}  // namespace assay
