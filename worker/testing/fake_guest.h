// Guests that compute in this process, on a fake clock. Only for tests.
#ifndef ASSAY_WORKER_TESTING_FAKE_GUEST_H_
#define ASSAY_WORKER_TESTING_FAKE_GUEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "worker/guest/guest_session.h"
#include "worker/runner/guest_source.h"

namespace assay {

namespace v1 {
class Problem;
}

// What a fake guest does. `call` counts the calls from 1, empty ones left out.
struct FakeGuestPlan {
  // Gets all tensors in the order of assay_invoke.
  std::function<void(int call, const std::vector<std::span<std::byte>>& tensors,
                     const std::vector<int64_t>& axes)>
      compute;
  std::function<CallTiming(int call)> timing;  // by default 10 us, 2 us outside of it
  // Time outside of empty call number `call`, from 1; by default 2 us.
  std::function<double(int call, GuestCache cache)> empty_outside_ns;
  std::function<double(int call)> empty_ns;  // time of it; by default that of a handshake
  double clock_ratio = 1;                    // of the time of a call, how much passes by the clock
  bool account_is_void = false;      // without CallTiming::outside_ns; else 2 us, if not set
  bool computes_early = false;       // as soon as it is told to get ready
  std::optional<GuestEnd> load_end;  // the load ends so
  int end_at_call = 0;               // this call ends as `end`; 0: none
  GuestEnd end;
};

class FakeGuest : public GuestSession {
 public:
  FakeGuest(FakeGuestPlan plan, FakeClock* clock) : plan_(std::move(plan)), clock_(clock) {}

  absl::Status Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                    const std::vector<int64_t>& axes) override;
  std::span<std::byte> Buffer(size_t index) override { return buffers_[index]; }
  using GuestSession::Call;
  std::optional<CallTiming> Call(GuestCache cache, absl::Duration timeout,
                                 const std::function<void()>& once_armed) override;
  std::optional<CallTiming> CallEmpty(GuestCache cache) override;
  const std::optional<GuestEnd>& ended() const override { return ended_; }
  std::string output() override { return "fake output\n"; }
  const std::vector<std::string>& walls() const override { return walls_; }
  const std::vector<std::string>& missing_walls() const override { return missing_walls_; }

 private:
  FakeGuestPlan plan_;
  FakeClock* const clock_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<int64_t> axes_;
  int calls_ = 0;
  int empty_calls_ = 0;
  std::optional<GuestEnd> ended_;
  std::vector<std::string> walls_ = {"fake-wall"};
  std::vector<std::string> missing_walls_;
};

// Gives a reference, a candidate, a reference, a candidate, as a runner takes them.
class FakeGuestSource : public GuestSource {
 public:
  FakeGuestSource(FakeGuestPlan reference, FakeGuestPlan candidate, FakeClock* clock)
      : reference_(std::move(reference)), candidate_(std::move(candidate)), clock_(clock) {}

  absl::StatusOr<std::unique_ptr<GuestSession>> Take() override;
  void Prepare(int count) override {}
  void Retire(std::unique_ptr<GuestSession> guest) override {}
  void WaitIdle() override {}

  absl::Status failure;  // of every Take when it is bad

 private:
  FakeGuestPlan reference_;
  FakeGuestPlan candidate_;
  FakeClock* const clock_;
  int taken_ = 0;
};

// A problem for tests, "triple": y = 3 x over axis n, f32. Workloads "main" (n = 64), "other"
// (n = 40) and "odd" (n = 7, verify only). With `transforms`, a permutation of x and y and a scale
// by powers of two.
void MakeTripleProblem(bool transforms, v1::Problem* problem);

// Its reference, and a candidate that is right.
FakeGuestPlan TripleReference();
FakeGuestPlan TripleCandidate();

// y[i] = factor * x[i] on a candidate's tensors.
void Multiply(const std::vector<std::span<std::byte>>& tensors, float factor);

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_FAKE_GUEST_H_
