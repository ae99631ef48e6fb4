#include "worker/agent/canary.h"

#include "assay/internal/v1/dispatch.pb.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"

namespace assay {
namespace {

constexpr char kReference[] =
    "extern \"C\" void canary_reference(const float* x, double* y, int64_t n) {\n"
    "  for (int64_t i = 0; i < n; ++i) y[i] = 2.0 * x[i];\n"
    "}\n";
constexpr char kCandidate[] =
    "extern \"C\" void canary(const float* x, float* y, int64_t n) {\n"
    "  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + x[i];\n"
    "}\n";
constexpr char kDeviceCandidate[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry canary(.param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p;
  .reg .b32 %i, %n, %block, %threads, %thread;
  .reg .f32 %v;
  .reg .b64 %x, %y, %offset;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.u32 %n, [n];
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %i, %block, %threads, %thread;
  setp.ge.s32 %p, %i, %n;
  @%p bra done;
  mul.wide.s32 %offset, %i, 4;
  add.s64 %x, %x, %offset;
  add.s64 %y, %y, %offset;
  ld.global.f32 %v, [%x];
  add.f32 %v, %v, %v;
  st.global.f32 [%y], %v;
done:
  ret;
}
)";
constexpr int64_t kElements = 1000;

void AddTensor(const char* name, v1::Tensor::Role role, v1::Problem* problem) {
  v1::Tensor& tensor = *problem->add_tensors();
  tensor.set_name(name);
  tensor.set_dtype(v1::F32);
  tensor.set_role(role);
  tensor.add_shape(problem->axes(0).name());
  if (role == v1::Tensor::INPUT) {
    tensor.mutable_distribution()->mutable_normal()->set_stddev(1);
    tensor.set_scalable(true);
    return;
  }
  tensor.mutable_tolerance()->set_kind(v1::TolerancePolicy::SCALED);
  tensor.mutable_tolerance()->set_relative_l2_max(1e-6);
  tensor.mutable_tolerance()->set_element_max(1e-6);
}

}  // namespace

void MakeCanary(bool device, internal::v1::WorkSpec* work) {
  v1::Problem& problem = *work->mutable_problem();
  problem.set_name("problems/canary");
  problem.set_version(1);
  problem.add_axes()->set_name("n");
  AddTensor("x", v1::Tensor::INPUT, &problem);
  AddTensor("y", v1::Tensor::OUTPUT, &problem);
  problem.mutable_work()->set_unit(v1::WorkModel::FLOP_F32);
  problem.mutable_work()->set_operations("n");
  v1::Workload& workload = *problem.add_workloads();
  workload.set_name("small");
  (*workload.mutable_axes())["n"] = kElements;
  problem.set_reference("reference.cc");
  v1::SourceFile& reference = *problem.add_files();
  reference.set_path("reference.cc");
  reference.set_content(kReference);
  problem.set_digest(ProblemDigest(problem));

  v1::Candidate& candidate = *work->mutable_candidate();
  candidate.mutable_spec()->set_problem("canary");
  candidate.mutable_spec()->set_language(device ? v1::PTX : v1::CPP);
  v1::SourceFile& source = *candidate.add_files();
  source.set_path(device ? "canary.ptx" : "canary.cc");
  source.set_content(device ? kDeviceCandidate : kCandidate);
  if (device) {
    v1::Launch& launch = *candidate.mutable_spec()->mutable_plan()->add_launches();
    launch.set_kernel("canary");
    launch.add_grid("ceil_div(n, 128)");
    launch.add_block("128");
    for (const char* argument : {"x", "y", "n"}) launch.add_args(argument);
  }
  candidate.set_digest(CandidateDigest(candidate));

  work->mutable_evaluation()->set_name("evaluations/canary");
  work->mutable_evaluation()->set_problem("problems/canary");
  work->mutable_evaluation()->set_level(v1::VERIFY);
}

}  // namespace assay
