// The coordinator's partners: workers that follow the worker protocol, with crashes, hangs and
// stubbornness, and clients that create, retry and cancel.
#ifndef ASSAY_TESTS_SIMULATION_ACTORS_H_
#define ASSAY_TESTS_SIMULATION_ACTORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/simulation/world.h"

namespace assay::simulation {

class SimWorker {
 public:
  SimWorker(World* world, std::string name, std::string device_class, int slots)
      : world_(world),
        name_(std::move(name)),
        device_class_(std::move(device_class)),
        slots_(slots) {}

  void Start();
  // Loses everything that the process knew.
  void Crash();
  bool up() const { return up_; }
  const std::string& name() const { return name_; }

 private:
  struct Job {
    int64_t fence = 0;
    bool poisoned = false;
    bool done = false;     // the outcome waits to be acknowledged
    bool hung = false;     // says nothing any more
    double median_ns = 0;  // of a ranked one
    absl::Duration expires;
  };

  // Runs `event` unless the process has died since.
  void After(absl::Duration delay, std::function<void()> event);
  bool Alive(uint64_t incarnation) const { return up_ && incarnation_ == incarnation; }
  Job* FindJob(const std::string& evaluation, int64_t fence);
  std::string FullName() const { return "workers/" + name_; }

  void Register();
  void OnRegistered(const absl::StatusOr<internal::v1::RegisterWorkerResponse>& response);
  // A refused call: register again when it is about the session.
  void OnSessionError(const absl::Status& status);
  void StartPolls();
  void Poll(const std::string& poll_id, int tries);
  void StartJob(const internal::v1::Lease& lease);
  void RenewLater(const std::string& evaluation, int64_t fence);
  void Renew(const std::string& evaluation, int64_t fence);
  void FinishJob(const std::string& evaluation, int64_t fence);
  void Complete(const std::string& evaluation, int64_t fence);
  void Abandon(const std::string& evaluation, int64_t fence, const std::string& code);

  World* const world_;
  const std::string name_;
  const std::string device_class_;
  const int slots_;
  bool up_ = false;
  uint64_t incarnation_ = 0;
  uint64_t poll_count_ = 0;
  bool registering_ = false;
  std::string session_;
  int open_polls_ = 0;
  std::map<std::string, Job> jobs_;
};

class SimClient {
 public:
  SimClient(World* world, std::string name) : world_(world), name_(std::move(name)) {}
  // Creates `count` evaluations over `period`.
  void Start(int count, absl::Duration period);
  bool done() const { return open_ == 0; }

 private:
  void Create(const v1::Evaluation& evaluation, const std::string& request_id,
              const std::string& expected);
  void Cancel(const std::string& evaluation);

  World* const world_;
  const std::string name_;
  int open_ = 0;  // calls that must still be answered
};

}  // namespace assay::simulation

#endif  // ASSAY_TESTS_SIMULATION_ACTORS_H_
