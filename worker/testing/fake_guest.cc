#include "worker/testing/fake_guest.h"

#include <utility>

#include "assay/v1/problem.pb.h"
#include "kernels/problem.h"

namespace assay {
namespace {

constexpr double kDurationNs = 10'000;
constexpr double kOutsideNs = 2'000;
constexpr double kEmptyNs = 160;

CallTiming DefaultTiming() {
  CallTiming timing;
  timing.duration_ns = kDurationNs;
  timing.outside_ns = kOutsideNs;
  return timing;
}

void AddWorkload(const char* name, int64_t n, bool verify_only, v1::Problem* problem) {
  v1::Workload& workload = *problem->add_workloads();
  workload.set_name(name);
  (*workload.mutable_axes())["n"] = n;
  workload.set_verify_only(verify_only);
}

}  // namespace

absl::Status FakeGuest::Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                             const std::vector<int64_t>& axes) {
  if (plan_.load_end.has_value()) {
    ended_ = plan_.load_end;
    return absl::OkStatus();
  }
  for (const GuestBuffer& buffer : buffers) buffers_.emplace_back(buffer.bytes);
  axes_ = axes;
  return absl::OkStatus();
}

std::optional<CallTiming> FakeGuest::Call(GuestCache cache, absl::Duration timeout,
                                          const std::function<void()>& once_armed) {
  if (ended_.has_value()) return std::nullopt;
  ++calls_;
  if (calls_ == plan_.end_at_call) {
    ended_ = plan_.end;
    return std::nullopt;
  }
  std::vector<std::span<std::byte>> tensors(buffers_.begin(), buffers_.end());
  if (once_armed && !plan_.computes_early) once_armed();
  plan_.compute(calls_, tensors, axes_);
  if (once_armed && plan_.computes_early) once_armed();
  CallTiming timing = plan_.timing ? plan_.timing(calls_) : DefaultTiming();
  if (plan_.account_is_void) {
    timing.outside_ns.reset();
  } else if (!timing.outside_ns.has_value()) {
    timing.outside_ns = kOutsideNs;
  }
  if (timing.duration_ns > 0) {
    clock_->Advance(absl::Nanoseconds(plan_.clock_ratio * timing.duration_ns));
  }
  return timing;
}

std::optional<CallTiming> FakeGuest::CallEmpty(GuestCache cache) {
  if (ended_.has_value()) return std::nullopt;
  CallTiming timing;
  ++empty_calls_;
  timing.duration_ns = plan_.empty_ns ? plan_.empty_ns(empty_calls_) : kEmptyNs;
  timing.outside_ns =
      plan_.empty_outside_ns ? plan_.empty_outside_ns(empty_calls_, cache) : kOutsideNs;
  return timing;
}

absl::StatusOr<std::unique_ptr<GuestSession>> FakeGuestSource::Take() {
  if (!failure.ok()) return failure;
  return std::make_unique<FakeGuest>(taken_++ % 2 == 0 ? reference_ : candidate_, clock_);
}

void MakeTripleProblem(bool transforms, v1::Problem* problem) {
  problem->set_name("problems/triple");
  problem->set_version(1);
  problem->add_axes()->set_name("n");
  v1::Tensor& x = *problem->add_tensors();
  x.set_name("x");
  x.set_dtype(v1::F32);
  x.set_role(v1::Tensor::INPUT);
  x.add_shape(problem->axes(0).name());
  x.mutable_distribution()->mutable_normal()->set_stddev(1);
  x.set_scalable(true);
  v1::Tensor& y = *problem->add_tensors();
  y.set_name("y");
  y.set_dtype(v1::F32);
  y.set_role(v1::Tensor::OUTPUT);
  y.add_shape(problem->axes(0).name());
  y.mutable_tolerance()->set_kind(v1::TolerancePolicy::SCALED);
  y.mutable_tolerance()->set_relative_l2_max(1e-6);
  y.mutable_tolerance()->set_element_max(1e-6);
  if (transforms) {
    v1::Transform::Permutation& permutation = *problem->add_transforms()->mutable_permutation();
    permutation.add_inputs()->set_tensor("x");
    permutation.add_outputs()->set_tensor("y");
    v1::Transform::PowerOfTwoScale& scale =
        *problem->add_transforms()->mutable_power_of_two_scale();
    scale.add_inputs()->set_tensor("x");
    scale.mutable_inputs(0)->set_power(1);
    scale.add_outputs()->set_tensor("y");
    scale.mutable_outputs(0)->set_power(1);
    scale.set_exponent_max(4);
    scale.set_signed_(true);
  }
  problem->mutable_work()->set_unit(v1::WorkModel::FLOP_F32);
  problem->mutable_work()->set_operations("n");
  AddWorkload("main", 64, false, problem);
  AddWorkload("other", 40, false, problem);
  AddWorkload("odd", 7, true, problem);
  problem->set_reference("reference.cc");
  v1::SourceFile& reference = *problem->add_files();
  reference.set_path("reference.cc");
  reference.set_content("// not compiled in tests with fakes\n");
  problem->set_digest("triple-digest");
}

FakeGuestPlan TripleReference() {
  FakeGuestPlan plan;
  plan.compute = [](int call, const std::vector<std::span<std::byte>>& tensors,
                    const std::vector<int64_t>& axes) {
    const float* x = reinterpret_cast<const float*>(tensors[0].data());
    double* y = reinterpret_cast<double*>(tensors[1].data());
    for (int64_t i = 0; i < axes[0]; ++i) y[i] = 3.0 * x[i];
  };
  return plan;
}

void Multiply(const std::vector<std::span<std::byte>>& tensors, float factor) {
  const float* x = reinterpret_cast<const float*>(tensors[0].data());
  float* y = reinterpret_cast<float*>(tensors[1].data());
  for (size_t i = 0; i < tensors[1].size() / sizeof(float); ++i) y[i] = factor * x[i];
}

FakeGuestPlan TripleCandidate() {
  FakeGuestPlan plan;
  plan.compute = [](int call, const std::vector<std::span<std::byte>>& tensors,
                    const std::vector<int64_t>& axes) { Multiply(tensors, 3.0f); };
  return plan;
}

}  // namespace assay
