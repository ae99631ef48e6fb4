// Builds artifacts and loads them into real guests. Only for tests.
#ifndef ASSAY_WORKER_TESTING_GUEST_FIXTURE_H_
#define ASSAY_WORKER_TESTING_GUEST_FIXTURE_H_

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/builder/builder.h"
#include "worker/guest/guest_session.h"
#include "worker/sandbox/slots.h"

namespace assay {

// Keeps the thread that makes it and guests with its `options` on cores of their own, where there
// are two, as a worker does.
class CoresApart {
 public:
  explicit CoresApart(GuestOptions* options) {
    sched_getaffinity(0, sizeof(before_), &before_);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &before_)) cores.push_back(core);
    }
    if (cores.size() < 2) return;
    options->core = cores[1];
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(cores[0], &mine);
    EXPECT_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
  }
  CoresApart(const CoresApart&) = delete;
  ~CoresApart() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_;
};

// Skips where bubblewrap is missing.
class GuestFixture : public ::testing::Test {
 protected:
  static constexpr absl::Duration kCallMax = absl::Seconds(20);

  static void SetUpTestSuite() {
    if (access("/usr/bin/bwrap", X_OK) != 0) return;
    directory_ = new TemporaryDirectory(*TemporaryDirectory::Create("guest-test"));
    CppBuilderOptions options;
    options.cache_directory = directory_->path();
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeCppBuilder(options);
    ASSERT_OK(builder);
    builder_ = builder->release();
  }

  static void TearDownTestSuite() {
    delete builder_;
    delete directory_;
    builder_ = nullptr;
    directory_ = nullptr;
  }

  void SetUp() override {
    if (builder_ == nullptr) GTEST_SKIP() << "bubblewrap is not installed";
  }

  // Path of the artifact.
  static std::string Build(const std::string& source, const std::string& invoke,
                           std::vector<std::string> libraries = {}) {
    BuildRequest request;
    request.files = {{"k.cc", source}};
    request.sources = {"k.cc"};
    request.invoke_source = invoke;
    request.libraries = std::move(libraries);
    absl::StatusOr<BuildResult> result = builder_->Build(request);
    EXPECT_OK(result);
    if (!result.ok()) return "";
    EXPECT_TRUE(result->ok) << result->reason << "\n" << result->log;
    return result->artifact_path;
  }

  static GuestOptions Options() {
    GuestOptions options;
    const char* dir = std::getenv("ASSAY_BIN_DIR");
    options.guest_binary = absl::StrCat(dir == nullptr ? "bin" : dir, "/assay-guest");
    options.slot = ProcessSlots()->runner_first * kSlotsPerRunner;
    options.memory_bytes_max = 256 << 20;
    return options;
  }

  // A loaded session whose assay_invoke gets x[n], y[n] and the axes `mode` and n.
  std::unique_ptr<GuestSession> LoadedFrom(const std::string& artifact, int64_t mode,
                                           int64_t n = 100, GuestOptions options = Options()) {
    absl::StatusOr<std::unique_ptr<GuestSession>> session = GuestSession::Start(options);
    EXPECT_OK(session);
    if (!session.ok()) return nullptr;
    UniqueFd fd(open(artifact.c_str(), O_RDONLY | O_CLOEXEC));
    const auto bytes = static_cast<size_t>(n) * sizeof(float);
    EXPECT_OK((*session)->Load(fd.get(), {{"x", bytes, false}, {"y", bytes, true}}, {mode, n}));
    return *std::move(session);
  }

  static std::span<float> Floats(GuestSession& session, size_t index) {
    const std::span<std::byte> bytes = session.Buffer(index);
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  inline static TemporaryDirectory* directory_ = nullptr;
  inline static Builder* builder_ = nullptr;
};

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_GUEST_FIXTURE_H_
