// Launch plans from anywhere: the bytes are taken as the text of a plan, and as the source of a
// kernel for which one is proposed. What is resolved lies within every limit; what is proposed
// parses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "kernels/plan/plan.h"
#include "kernels/plan/propose.h"
#include "kernels/problem.h"

namespace {

class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

template <typename Message>
bool Parse(const std::string& text, Message* message) {
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  parser.SetRecursionLimit(20);
  return parser.ParseFromString(text, message);
}

void Check(bool holds) {
  if (!holds) std::abort();
}

assay::ResolvedWorkload Workload() {
  assay::ResolvedWorkload workload;
  workload.axes = {{"n", 1000}, {"m", 3}};
  workload.axis_values = {1000, 3};
  for (const char* name : {"a", "b", "c"}) {
    assay::TensorShape tensor;
    tensor.name = name;
    tensor.dims = {1000};
    tensor.elements = 1000;
    tensor.bytes = 4000;
    workload.tensors.push_back(tensor);
  }
  return workload;
}

void Resolve(const std::string& text) {
  assay::v1::CandidateSpec spec;
  if (!Parse(text, &spec)) return;
  const assay::PlanLimits limits;
  const std::vector<assay::KernelSignature> kernels = {
      {"k",
       {{"p0", "u64", 8, false}, {"p1", "u64", 8, true}, {"p2", "s32", 4, false}},
       64,
       512,
       {}},
      {"none", {}, 0, 0, {}},
      {"narrow", {{"p0", "u8", 1, false}, {"p1", "f32", 4, false}}, 0, 0, {}}};
  const auto plan = assay::ResolvePlan(spec, Workload(), {{"BLOCK", 128}}, limits, kernels);
  if (!plan.ok()) {
    Check(plan.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  int64_t workspace_bytes = 0;
  for (const assay::ResolvedWorkspace& workspace : plan->workspaces) {
    Check(workspace.bytes >= 0);
    workspace_bytes += workspace.bytes;
  }
  Check(workspace_bytes <= limits.workspace_bytes_max);
  for (const assay::ResolvedLaunch& launch : plan->launches) {
    uint64_t threads = 1;
    for (size_t i = 0; i < 3; ++i) {
      Check(launch.grid[i] >= 1 && launch.grid[i] <= limits.grid_max[i]);
      Check(launch.block[i] >= 1 && launch.block[i] <= limits.block_max[i]);
      threads *= launch.block[i];
    }
    Check(threads <= 1024);
    Check(launch.shared_bytes >= 0 && launch.shared_bytes <= limits.shared_bytes_max);
    for (const assay::PlanArgument& argument : launch.arguments) {
      Check(argument.kind != assay::PlanArgument::Kind::kTensor || argument.index < 3);
      Check(argument.kind != assay::PlanArgument::Kind::kWorkspace ||
            static_cast<size_t>(argument.index) < plan->workspaces.size());
      Check(argument.bytes == 8 || argument.bits >> (8 * argument.bytes) == 0);
    }
  }
}

void Propose(std::string_view source) {
  assay::v1::Problem problem;
  Check(Parse(R"(name: "problems/p" axes { name: "n" } axes { name: "m" }
                 tensors { name: "a" dtype: F32 role: INPUT shape: "n" shape: "m" }
                 tensors { name: "b" dtype: F32 role: INPUT shape: "n" }
                 tensors { name: "c" dtype: F32 role: OUTPUT shape: "n" shape: "m" })",
              &problem));
  const auto proposal = assay::ProposePlan(source, problem);
  if (!proposal.ok()) return;
  assay::v1::CandidateSpec spec;
  Check(Parse(proposal->plan, &spec));
  Check(spec.plan().launches_size() == 1 && spec.plan().launches(0).kernel() == proposal->kernel);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Resolve(text);
  Propose(text);
  return 0;
}
