// Measures for scripts/bench what the integrity checks of a measurement cost: the same number of
// timed calls, warm and cold, with fresh content, poison, comparison, altered and empty calls, and
// bare. Once for the evaluation and once for the measuring alone, which is the harder figure.
//
// What both sides contain: builds and loading count in neither. A bare call has the handshake, the
// preparation of the caches and the look at canaries, as a checked one has. The evaluation adds its
// verification to both: inputs of the battery, the reference, calls and their comparison, without
// which nobody would know right from wrong. That holds no integrity checks, since those of a
// verification (orders, state that is carried, launches left out) need an emulated device, which
// candidates of the CPU have not.
//
//   assay-bench-integrity --guest PATH_OF_ASSAY_GUEST --source ROOT [--rounds 3] [--figure softmax]
//
// prints one JSON object a line.
#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"
#include "worker/agent/build_plan.h"
#include "worker/builder/builder.h"
#include "worker/guest/guest_session.h"
#include "worker/measure/measurer.h"
#include "worker/measure/statistics.h"
#include "worker/sandbox/slots.h"
#include "worker/verify/loaded_work.h"
#include "worker/verify/verifier.h"

namespace assay::bench {
namespace {

constexpr double kReach = 1.5;

struct Options {
  std::string guest;
  std::string source;
  std::string figure;  // the only one; empty: all
  int rounds = 3;
};

struct Case {
  const char* figure;
  const char* problem;
  const char* candidate;
  const char* workload;
};
constexpr Case kCases[] = {
    {"gemm_f32", "gemm_f32", "avx2.cc", "m=512,n=512,k=512"},
    {"gemm_f32_1024", "gemm_f32", "avx2.cc", "m=1024,n=1024,k=1024"},
    {"softmax", "softmax", "avx2.cc", "dram"},
    {"layernorm", "layernorm", "avx2.cc", "dram"},
    {"reduce_sum", "reduce_sum", "avx2.cc", "dram"},
};

// What one case needs, built.
struct Subject {
  v1::Problem problem;
  ResolvedWorkload workload;
  std::string candidate_artifact;
  std::string reference_artifact;
};

struct Calls {
  int warm = 0;
  int cold = 0;
};

struct Costs {
  double verify_ns = 0;
  double checked_ns = 0;
  double bare_ns = 0;    // of as many calls
  double median_ns = 0;  // of a call
  Calls calls;
};

absl::StatusOr<std::string> BuildOne(Builder* builder, const BuildRequest& request) {
  ASSAY_ASSIGN_OR_RETURN(BuildResult result, builder->Build(request));
  if (!result.ok) return absl::InternalError(absl::StrCat("does not compile: ", result.log));
  return result.artifact_path;
}

absl::StatusOr<Subject> Prepare(const Options& options, const Case& c, Builder* builder) {
  Subject subject;
  const std::string folder = absl::StrCat(options.source, "/kernels/problems/", c.problem);
  ASSAY_RETURN_IF_ERROR(LoadProblemDirectory(folder, &subject.problem));
  v1::Candidate candidate;
  ASSAY_RETURN_IF_ERROR(
      LoadCandidate(absl::StrCat(folder, "/candidates/", c.candidate), c.problem, &candidate));
  v1::WorkloadSelector selector;
  ASSAY_RETURN_IF_ERROR(ParseWorkloadSelector(c.workload, &selector));
  ASSAY_ASSIGN_OR_RETURN(subject.workload, ResolveSelector(subject.problem, selector));
  ASSAY_ASSIGN_OR_RETURN(const ValueMap configuration, ResolveConfiguration(candidate.spec(), {}));
  ASSAY_ASSIGN_OR_RETURN(
      subject.candidate_artifact,
      BuildOne(builder, CandidateBuild(subject.problem, candidate, configuration)));
  ASSAY_ASSIGN_OR_RETURN(subject.reference_artifact,
                         BuildOne(builder, ReferenceBuild(subject.problem)));
  return subject;
}

absl::StatusOr<std::unique_ptr<LoadedWork>> Load(const Subject& subject, GuestOptions guest) {
  LoadedWorkOptions options;
  options.problem = &subject.problem;
  options.workload = subject.workload;
  options.call_timeout = absl::Seconds(limits::kCallSeconds);
  options.clock = SystemClock();
  options.spare_core = guest.core;
  ASSAY_ASSIGN_OR_RETURN(options.candidate, GuestSession::Start(guest));
  ++guest.slot;
  ASSAY_ASSIGN_OR_RETURN(options.reference, GuestSession::Start(guest));
  auto work = std::make_unique<LoadedWork>(std::move(options));
  const UniqueFd candidate(open(subject.candidate_artifact.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd reference(open(subject.reference_artifact.c_str(), O_RDONLY | O_CLOEXEC));
  ASSAY_ASSIGN_OR_RETURN(const Step step, work->Load(candidate.get(), reference.get()));
  if (step != Step::kDone) return absl::InternalError("a guest ended while it was loaded");
  return work;
}

// What a call without checks takes, in the mean of `count`.
absl::StatusOr<double> CallBare(LoadedWork* work, GuestCache cache, int count) {
  const absl::Duration start = work->clock().Monotonic();
  for (int call = 0; call < count; ++call) {
    if (!work->candidate().Call(cache, absl::Seconds(limits::kCallSeconds)).has_value()) {
      return absl::InternalError("the candidate ended");
    }
  }
  return absl::ToDoubleNanoseconds(work->clock().Monotonic() - start) / std::max(1, count);
}

struct BareCalls {
  double warm_ns = 0;
  double cold_ns = 0;
};

absl::StatusOr<BareCalls> MeasureBare(LoadedWork* work, const Calls& calls) {
  BareCalls bare;
  ASSAY_ASSIGN_OR_RETURN(bare.warm_ns, CallBare(work, GuestCache::kWarm, calls.warm));
  ASSAY_ASSIGN_OR_RETURN(bare.cold_ns, CallBare(work, GuestCache::kCold, calls.cold));
  return bare;
}

absl::Status MeasureChecked(LoadedWork* work, uint64_t seed, Costs* costs) {
  v1::Verification verification;
  v1::RunnerSamples samples;
  const absl::Duration start = work->clock().Monotonic();
  ASSAY_ASSIGN_OR_RETURN(const MeasureResult result,
                         MeasureWork(work, QuickProtocol(), seed, &verification, &samples));
  costs->checked_ns = absl::ToDoubleNanoseconds(work->clock().Monotonic() - start);
  if (result.step != Step::kDone || !result.right || result.hidden_work) {
    return absl::InternalError(absl::StrCat("the measurement failed: ", result.reason));
  }
  costs->calls.warm = samples.warmup_calls() + samples.warm_ns_size() + samples.discarded_count();
  costs->calls.cold = samples.cold_ns_size();
  costs->median_ns = Median({samples.warm_ns().begin(), samples.warm_ns().end()});
  return absl::OkStatus();
}

// `bare_first`: so many bare calls before the checked ones; otherwise after them, as many as those.
absl::StatusOr<Costs> MeasureOnce(const Subject& subject, const GuestOptions& guest,
                                  const std::optional<Calls>& bare_first) {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedWork> work, Load(subject, guest));
  const uint64_t seed = SecureRandom64();
  VerifyOptions verify;
  verify.nonce = seed;
  internal::v1::RunnerWorkloadReport report;
  Costs costs;
  const absl::Duration begin = work->clock().Monotonic();
  ASSAY_ASSIGN_OR_RETURN(const VerifyResult verified, VerifyWork(work.get(), verify, &report));
  costs.verify_ns = absl::ToDoubleNanoseconds(work->clock().Monotonic() - begin);
  if (verified.step != Step::kDone || !verified.right) {
    return absl::InternalError(absl::StrCat("the verification failed: ", verified.reason));
  }
  BareCalls bare;
  if (bare_first.has_value()) {
    ASSAY_ASSIGN_OR_RETURN(bare, MeasureBare(work.get(), *bare_first));
  }
  ASSAY_RETURN_IF_ERROR(MeasureChecked(work.get(), seed, &costs));
  if (!bare_first.has_value()) {
    ASSAY_ASSIGN_OR_RETURN(bare, MeasureBare(work.get(), costs.calls));
  }
  costs.bare_ns = bare.warm_ns * costs.calls.warm + bare.cold_ns * costs.calls.cold;
  return costs;
}

absl::Status MeasureCase(const Options& options, const Case& c, Builder* builder,
                         const GuestOptions& guest) {
  ASSAY_ASSIGN_OR_RETURN(const Subject subject, Prepare(options, c, builder));
  std::vector<double> ratios;
  std::vector<double> measuring;
  Costs last;
  for (int round = 0; round < options.rounds; ++round) {
    // In turns, so that neither side always has the machine as the other left it.
    const std::optional<Calls> bare_first =
        round % 2 == 1 ? std::optional<Calls>(last.calls) : std::nullopt;
    ASSAY_ASSIGN_OR_RETURN(last, MeasureOnce(subject, guest, bare_first));
    ratios.push_back((last.verify_ns + last.checked_ns) / (last.verify_ns + last.bare_ns));
    measuring.push_back(last.checked_ns / last.bare_ns);
  }
  const double ratio = Median(ratios);
  const std::string detail = absl::StrFormat(
      "%s %s, %s, quick level: %.0f ms of verification, and %d calls of %.2f ms that took %.0f ms "
      "with the checks and %.0f ms without them, %.2f for the measuring alone; median of %d "
      "rounds, "
      "worst %.2f",
      c.problem, c.workload, c.candidate, last.verify_ns / 1e6, last.calls.warm + last.calls.cold,
      last.median_ns / 1e6, last.checked_ns / 1e6, last.bare_ns / 1e6, Median(measuring),
      options.rounds, *std::max_element(ratios.begin(), ratios.end()));
  std::cout << absl::StrFormat(
                   "{\"figure\": \"integrity_cost_%s\", \"value\": %.4g, \"unit\": \"ratio\", "
                   "\"reach\": %g, \"detail\": \"%s\"}",
                   c.figure, ratio, kReach, detail)
            << std::endl;
  return absl::OkStatus();
}

// This thread and the guests on cores of their own, as a worker has them.
void KeepApart(GuestOptions* guest) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  }
  if (cores.size() < 2) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cores[0], &own);
  if (sched_setaffinity(0, sizeof(own), &own) == 0) guest->core = cores[1];
}

absl::Status Run(const Options& options) {
  ASSAY_ASSIGN_OR_RETURN(const TemporaryDirectory directory,
                         TemporaryDirectory::Create("assay-bench-integrity"));
  CppBuilderOptions builder_options;
  builder_options.cache_directory = directory.path();
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Builder> builder, MakeCppBuilder(builder_options));
  ASSAY_RETURN_IF_ERROR(ProcessSlots().status());
  GuestOptions guest;
  guest.guest_binary = options.guest;
  guest.slot = ProcessSlots()->runner_first * kSlotsPerRunner;
  guest.memory_bytes_max = limits::kGuestMemoryBytes;
  KeepApart(&guest);
  for (const Case& c : kCases) {
    if (!options.figure.empty() && options.figure != c.figure) continue;
    ASSAY_RETURN_IF_ERROR(MeasureCase(options, c, builder.get(), guest));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--guest") options.guest = argv[i + 1];
    if (flag == "--source") options.source = argv[i + 1];
    if (flag == "--figure") options.figure = argv[i + 1];
    if (flag == "--rounds") options.rounds = std::max(1, std::atoi(argv[i + 1]));
  }
  if (options.guest.empty() || options.source.empty()) {
    std::cerr
        << "usage: assay-bench-integrity --guest PATH --source ROOT [--rounds N] [--figure NAME]\n";
    return 2;
  }
  const absl::Status status = assay::bench::Run(options);
  if (status.ok()) return 0;
  std::cerr << "assay-bench-integrity: " << status << "\n";
  return 1;
}
