#include "tests/simulation/actors.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/dispatch/times.h"

namespace assay::simulation {

namespace iv1 = internal::v1;

void SimWorker::After(absl::Duration delay, std::function<void()> event) {
  world_->loop().After(delay, [this, incarnation = incarnation_, event = std::move(event)] {
    if (Alive(incarnation)) event();
  });
}

SimWorker::Job* SimWorker::FindJob(const std::string& evaluation, int64_t fence) {
  auto it = jobs_.find(evaluation);
  return it == jobs_.end() || it->second.fence != fence ? nullptr : &it->second;
}

void SimWorker::Start() {
  up_ = true;
  ++incarnation_;
  world_->Trace(name_, " starts");
  Register();
}

void SimWorker::Crash() {
  world_->Trace(name_, " crashes with ", jobs_.size(), " jobs");
  up_ = false;
  registering_ = false;
  session_.clear();
  open_polls_ = 0;
  jobs_.clear();
}

// --- Sessions.

void SimWorker::Register() {
  if (registering_) return;
  registering_ = true;
  iv1::RegisterWorkerRequest request;
  request.set_worker(name_);
  request.set_lease_count_max(slots_);
  v1::Device* device = request.mutable_description()->add_devices();
  device->set_kind("cpu");
  device->set_device_class(device_class_);
  for (const auto& [evaluation, job] : jobs_) {
    auto* held = request.add_held_leases();
    held->set_evaluation(evaluation);
    held->set_fence(job.fence);
  }
  world_->Call<iv1::RegisterWorkerResponse>(
      absl::Seconds(5),
      [world = world_, request, full_name = FullName()](auto reply) {
        world->core()->Register(request, [world, reply, full_name](auto response) {
          if (response.ok()) {
            std::map<std::string, int64_t> kept;
            for (const auto& lease : response->kept_leases()) {
              kept[lease.evaluation()] = lease.fence();
            }
            world->checker().OnRegistered(full_name, kept, absl::Seconds(30), absl::Seconds(2));
          }
          reply(std::move(response));
        });
      },
      [this, incarnation = incarnation_](auto response) {
        if (Alive(incarnation)) OnRegistered(response);
      });
}

void SimWorker::OnRegistered(const absl::StatusOr<iv1::RegisterWorkerResponse>& response) {
  registering_ = false;
  if (!response.ok()) {
    After(world_->loop().Between(absl::Milliseconds(200), absl::Seconds(2)),
          [this] { Register(); });
    return;
  }
  session_ = response->session();
  world_->Trace(name_, " registered as ", session_, ", ", response->kept_leases_size(), " of ",
                jobs_.size(), " jobs kept");
  std::map<std::string, int64_t> kept;
  for (const auto& lease : response->kept_leases()) kept[lease.evaluation()] = lease.fence();
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    auto found = kept.find(it->first);
    const bool stands = found != kept.end() && found->second == it->second.fence;
    // A finished job may have been recorded already: its completion will say so.
    it = stands || it->second.done ? std::next(it) : jobs_.erase(it);
  }
  StartPolls();
}

void SimWorker::OnSessionError(const absl::Status& status) {
  if (absl::StartsWith(GetReason(status), "SESSION_")) Register();
}

// --- Polls.

void SimWorker::StartPolls() {
  while (open_polls_ + static_cast<int>(jobs_.size()) < slots_) {
    ++open_polls_;
    Poll(absl::StrCat(name_, ".", incarnation_, ".", ++poll_count_), 0);
  }
}

void SimWorker::Poll(const std::string& poll_id, int tries) {
  iv1::AcquireLeaseRequest request;
  request.set_session(session_);
  request.set_poll_id(poll_id);
  *request.mutable_wait() = ToProto(absl::Seconds(20));
  auto answered = [this, poll_id, tries](absl::StatusOr<iv1::AcquireLeaseResponse> response) {
    const absl::Duration pause =
        world_->loop().Between(absl::Milliseconds(50), absl::Milliseconds(1500));
    if (!response.ok()) {
      OnSessionError(response.status());
      if (tries < 8) {
        After(pause, [this, poll_id, tries] { Poll(poll_id, tries + 1); });
        return;
      }
    } else if (response->has_lease()) {
      --open_polls_;
      StartJob(response->lease());
      StartPolls();
      return;
    }
    After(pause, [this] {
      --open_polls_;
      StartPolls();
    });
  };
  world_->Call<iv1::AcquireLeaseResponse>(
      absl::Seconds(23),
      [world = world_, request, full_name = FullName()](auto reply) {
        world->core()->Acquire(request, [world, reply, full_name](auto response) {
          if (response.ok() && response->has_lease()) {
            const iv1::Lease& lease = response->lease();
            world->checker().OnLeaseAnswered(lease.ref().evaluation(), lease.ref().fence(),
                                             lease.attempt(), full_name,
                                             FromProto(lease.duration()));
            if (lease.work().candidate().name().empty() ||
                lease.work().evaluation().state() != v1::RUNNING) {
              world->checker().Fail("a lease without its work");
            }
          }
          reply(std::move(response));
        });
      },
      [this, incarnation = incarnation_, answered](auto response) {
        if (Alive(incarnation)) answered(std::move(response));
      },
      [world = world_, request] {
        world->core()->ForgetPoll(request.session(), request.poll_id());
      });
}

// --- Jobs.

void SimWorker::StartJob(const iv1::Lease& lease) {
  const std::string& evaluation = lease.ref().evaluation();
  const int64_t fence = lease.ref().fence();
  auto it = jobs_.find(evaluation);
  if (it != jobs_.end() && it->second.fence >= fence) return;  // answered twice
  Job job;
  job.fence = fence;
  job.poisoned = lease.work().evaluation().candidate_label() == "poison";
  job.hung = !world_->healing() && world_->loop().random().Chance(0.03);
  job.expires = world_->loop().now() + FromProto(lease.duration());
  if (lease.work().evaluation().level() == v1::RANKED) {
    job.median_ns = 100 + static_cast<double>(world_->loop().random().Below(900));
  }
  jobs_[evaluation] = job;
  world_->Trace(name_, " runs ", evaluation, " fence ", fence, job.hung ? ", hangs" : "");
  if (job.hung) {
    // Its process is stuck; the worker gives the slot up after a while.
    After(absl::Seconds(90), [this, evaluation, fence] {
      if (FindJob(evaluation, fence) != nullptr) jobs_.erase(evaluation);
      StartPolls();
    });
    return;
  }
  After(world_->loop().Between(absl::Milliseconds(50), absl::Seconds(25)),
        [this, evaluation, fence] { FinishJob(evaluation, fence); });
  RenewLater(evaluation, fence);
}

void SimWorker::RenewLater(const std::string& evaluation, int64_t fence) {
  After(absl::Seconds(10), [this, evaluation, fence] { Renew(evaluation, fence); });
}

void SimWorker::Renew(const std::string& evaluation, int64_t fence) {
  Job* job = FindJob(evaluation, fence);
  if (job == nullptr) return;
  if (world_->loop().now() > job->expires && !world_->loop().random().Chance(0.3)) {
    world_->Trace(name_, " lets ", evaluation, " go: not renewed in time");
    jobs_.erase(evaluation);
    StartPolls();
    return;
  }
  iv1::RenewLeaseRequest request;
  request.set_session(session_);
  request.mutable_ref()->set_evaluation(evaluation);
  request.mutable_ref()->set_fence(fence);
  request.set_stage(job->done ? "MEASURE" : "BUILD");
  auto answered = [this, evaluation, fence](absl::StatusOr<iv1::RenewLeaseResponse> response) {
    Job* current = FindJob(evaluation, fence);
    if (current == nullptr) return;
    if (!response.ok()) {
      OnSessionError(response.status());
      if (GetReason(response.status()) == "LEASE_FENCED" && !current->done) {
        jobs_.erase(evaluation);
        StartPolls();
        return;
      }
    } else if (response->cancel()) {
      jobs_.erase(evaluation);
      Abandon(evaluation, fence, "");
      StartPolls();
      return;
    } else {
      current->expires = world_->loop().now() + FromProto(response->duration());
    }
    RenewLater(evaluation, fence);
  };
  world_->Call<iv1::RenewLeaseResponse>(
      absl::Seconds(4),
      [world = world_, request, full_name = FullName()](auto reply) {
        world->core()->Renew(request, [world, reply, request, full_name](auto response) {
          if (response.ok() && !response->cancel()) {
            world->checker().OnRenewed(request.ref().evaluation(), request.ref().fence(), full_name,
                                       FromProto(response->duration()));
          }
          reply(std::move(response));
        });
      },
      [this, incarnation = incarnation_, answered](auto response) {
        if (Alive(incarnation)) answered(std::move(response));
      });
}

void SimWorker::FinishJob(const std::string& evaluation, int64_t fence) {
  Job* job = FindJob(evaluation, fence);
  if (job == nullptr) return;
  const double dice = world_->healing() ? 0.5 : world_->loop().random().Uniform();
  if (job->poisoned || dice < 0.10) {
    jobs_.erase(evaluation);
    Abandon(evaluation, fence, "INTERNAL");
    StartPolls();
  } else if (dice < 0.13) {
    jobs_.erase(evaluation);
    Abandon(evaluation, fence, "");
    StartPolls();
  } else {
    job->done = true;
    Complete(evaluation, fence);
  }
}

void SimWorker::Complete(const std::string& evaluation, int64_t fence) {
  const Job* job = FindJob(evaluation, fence);
  if (job == nullptr) return;
  iv1::CompleteLeaseRequest request;
  request.set_session(session_);
  request.mutable_ref()->set_evaluation(evaluation);
  request.mutable_ref()->set_fence(fence);
  request.mutable_outcome()->set_verdict(v1::PASSED);
  if (job->median_ns > 0) {
    v1::WorkloadResult* result = request.mutable_outcome()->add_workload_results();
    result->set_workload("small");
    result->mutable_measurement()->set_median_ns(job->median_ns);
  }
  auto answered = [this, evaluation, fence](absl::StatusOr<iv1::CompleteLeaseResponse> response) {
    if (FindJob(evaluation, fence) == nullptr) return;
    if (response.ok() || GetReason(response.status()) == "LEASE_FENCED") {
      world_->Trace(name_, " completed ", evaluation, " fence ", fence, ": ",
                    response.status().ToString());
      jobs_.erase(evaluation);
      StartPolls();
      return;
    }
    OnSessionError(response.status());
    After(world_->loop().Between(absl::Milliseconds(200), absl::Seconds(2)),
          [this, evaluation, fence] { Complete(evaluation, fence); });
  };
  world_->Call<iv1::CompleteLeaseResponse>(
      absl::Seconds(5),
      [world = world_, request](auto reply) {
        world->core()->Complete(request, [world, reply, request](auto response) {
          if (response.ok()) {
            world->checker().OnCompleteAcknowledged(request.ref().evaluation(),
                                                    request.ref().fence());
          }
          reply(std::move(response));
        });
      },
      [this, incarnation = incarnation_, answered](auto response) {
        if (Alive(incarnation)) answered(std::move(response));
      });
}

// Said once: when it is lost, the lease expires.
void SimWorker::Abandon(const std::string& evaluation, int64_t fence, const std::string& code) {
  world_->checker().OnGivenUp(evaluation, fence);
  iv1::AbandonLeaseRequest request;
  request.set_session(session_);
  request.mutable_ref()->set_evaluation(evaluation);
  request.mutable_ref()->set_fence(fence);
  request.mutable_error()->set_code(code);
  request.mutable_error()->set_reason(code.empty() ? "" : "TOOL_MISSING");
  world_->Call<iv1::AbandonLeaseResponse>(
      absl::Seconds(5),
      [world = world_, request](auto reply) { world->core()->Abandon(request, reply); },
      [this, incarnation = incarnation_](auto response) {
        if (Alive(incarnation)) OnSessionError(response.status());
      });
}

// --- Clients.

void SimClient::Start(int count, absl::Duration period) {
  Random& random = world_->loop().random();
  for (int i = 0; i < count; ++i) {
    v1::Evaluation evaluation;
    evaluation.set_problem("problems/gelu");
    const double dice = random.Uniform();
    evaluation.set_device_class(dice < 0.6    ? "cpu"
                                : dice < 0.78 ? "cpu-a"
                                : dice < 0.96 ? "cpu-b"
                                              : "cuda");
    evaluation.set_priority(static_cast<int>(random.Below(3)) - 1);
    if (random.Chance(0.05)) evaluation.set_candidate_label("poison");
    evaluation.set_level(random.Chance(0.4) ? v1::RANKED : v1::VERIFY);
    ++open_;
    world_->loop().After(period * random.Uniform(), [this, evaluation, i] {
      Create(evaluation, absl::StrCat(name_, "-", i), "");
    });
  }
}

// Repeats until it is acknowledged, and now and then after that.
void SimClient::Create(const v1::Evaluation& evaluation, const std::string& request_id,
                       const std::string& expected) {
  world_->Call<v1::Evaluation>(
      absl::Seconds(3),
      [world = world_, evaluation, request_id](auto reply) {
        world->Create(evaluation, request_id, reply);
      },
      [this, evaluation, request_id, expected](absl::StatusOr<v1::Evaluation> created) {
        Random& random = world_->loop().random();
        if (!created.ok()) {
          world_->loop().After(world_->loop().Between(absl::Milliseconds(100), absl::Seconds(2)),
                               [=, this] { Create(evaluation, request_id, expected); });
          return;
        }
        if (!expected.empty() && created->name() != expected) {
          world_->checker().Fail(
              absl::StrCat("request ", request_id, " made ", expected, " and ", created->name()));
        }
        if (expected.empty() && random.Chance(0.1)) {
          Create(evaluation, request_id, created->name());
        } else if (random.Chance(0.12)) {
          world_->loop().After(world_->loop().Between(absl::ZeroDuration(), absl::Seconds(40)),
                               [this, name = created->name()] { Cancel(name); });
        } else {
          --open_;
        }
      });
}

void SimClient::Cancel(const std::string& evaluation) {
  world_->Trace(name_, " cancels ", evaluation);
  world_->Call<v1::Evaluation>(
      absl::Seconds(3),
      [world = world_, evaluation](auto reply) { world->core()->Cancel(evaluation, reply); },
      [this, evaluation](absl::StatusOr<v1::Evaluation> cancelled) {
        if (cancelled.ok() || GetReason(cancelled.status()) == "EVALUATION_FINISHED") {
          --open_;
          return;
        }
        world_->loop().After(world_->loop().Between(absl::Milliseconds(100), absl::Seconds(2)),
                             [this, evaluation] { Cancel(evaluation); });
      });
}

}  // namespace assay::simulation
