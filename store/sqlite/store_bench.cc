// store-bench [FOLDER]: durable creations per second of the SQLite store, by writes in flight and
// evaluations a write, with 2 KiB of source each. FOLDER must be on the disk in question; default
// is the current folder. The table grows during the run; the last rows show what that costs.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/random.h"
#include "store/sqlite/sqlite_store.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

NewEvaluation MakeInput(uint64_t number, Random& random) {
  // Names as the server makes them: ordered by time, candidates by digest.
  const std::string digest = absl::StrFormat("%016x%016x", random(), random());
  NewEvaluation input =
      testing::MakeEvaluation(absl::StrFormat("%012x%020x", number / 10, random()), digest, "gelu");
  std::string source(2048, ' ');
  for (char& c : source) c = static_cast<char>('a' + random.Below(26));
  input.candidate->mutable_files(0)->set_content(std::move(source));
  input.request_id = absl::StrFormat("%016x%016x", random(), random());
  input.request_digest = std::string(64, 'd');
  return input;
}

struct Case {
  int in_flight;
  int batch;
};

struct Figures {
  int64_t evaluations = 0;
  double wall_s = 0;
  double cpu_s = 0;  // of the whole process, making the inputs excluded
  double p50_ms = 0;
  double p99_ms = 0;
};

// Inputs are made before the clock starts.
Figures Measure(Store& store, const Case& one, uint64_t* number, Random& random, size_t writes) {
  std::vector<std::vector<NewEvaluation>> inputs(writes);
  for (auto& input : inputs) {
    for (int i = 0; i < one.batch; ++i) input.push_back(MakeInput((*number)++, random));
  }
  absl::Mutex mutex;
  int in_flight = 0;
  std::vector<double> latencies_ms;
  const double start = Seconds();
  const double cpu_start = CpuSeconds();
  for (auto& input : inputs) {
    {
      absl::MutexLock lock(&mutex);
      const auto room = [&] { return in_flight < one.in_flight; };
      mutex.Await(absl::Condition(&room));
      ++in_flight;
    }
    const double sent = Seconds();
    store.CreateEvaluations(std::move(input), [&, sent](auto created) {
      if (!created.ok()) {
        std::fprintf(stderr, "%s\n", created.status().ToString().c_str());
        std::abort();
      }
      absl::MutexLock lock(&mutex);
      latencies_ms.push_back((Seconds() - sent) * 1e3);
      --in_flight;
    });
  }
  {
    absl::MutexLock lock(&mutex);
    const auto none = [&] { return in_flight == 0; };
    mutex.Await(absl::Condition(&none));
  }
  Figures figures;
  figures.wall_s = Seconds() - start;
  figures.cpu_s = CpuSeconds() - cpu_start;
  figures.evaluations = static_cast<int64_t>(latencies_ms.size()) * one.batch;
  std::sort(latencies_ms.begin(), latencies_ms.end());
  figures.p50_ms = latencies_ms[latencies_ms.size() / 2];
  figures.p99_ms = latencies_ms[latencies_ms.size() * 99 / 100];
  return figures;
}

int Run(const std::string& parent) {
  setenv("TMPDIR", parent.c_str(), 1);
  auto directory = TemporaryDirectory::Create("store-bench");
  auto store = directory.ok() ? OpenSqliteStore({.directory = directory->path()})
                              : absl::StatusOr<std::unique_ptr<Store>>(directory.status());
  if (!store.ok() || !testing::CreateProblem(**store, testing::MakeProblem("gelu")).ok()) {
    std::fprintf(stderr, "cannot open a store: %s\n", store.status().ToString().c_str());
    return 1;
  }
  Random random(1);
  uint64_t number = 0;
  const struct {
    Case one;
    size_t writes;
  } cases[] = {{{1, 1}, 400},    {{16, 1}, 3000},   {{256, 1}, 20000}, {{4, 100}, 300},
               {{16, 100}, 300}, {{256, 1}, 20000}, {{16, 100}, 300}};
  std::printf("%9s %6s %12s %10s %12s %9s %9s %10s\n", "in flight", "batch", "stored before",
              "creates/s", "CPU us each", "p50 ms", "p99 ms", "CPU/wall");
  for (const auto& [one, writes] : cases) {
    const uint64_t before = number;
    const Figures figures = Measure(**store, one, &number, random, writes);
    const double count = static_cast<double>(figures.evaluations);
    std::printf("%9d %6d %12llu %10.0f %12.1f %9.2f %9.2f %10.2f\n", one.in_flight, one.batch,
                static_cast<unsigned long long>(before), count / figures.wall_s,
                figures.cpu_s / count * 1e6, figures.p50_ms, figures.p99_ms,
                figures.cpu_s / figures.wall_s);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::Run(argc > 1 ? argv[1] : "."); }
