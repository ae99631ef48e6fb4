// What the tests of device code's builders share.
#ifndef ASSAY_WORKER_BUILDER_DEVICE_BUILDER_FIXTURE_H_
#define ASSAY_WORKER_BUILDER_DEVICE_BUILDER_FIXTURE_H_

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/builder/cuda_builder.h"

namespace assay {

// Skips without bubblewrap.
class DeviceBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
    ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  }

  CudaBuilderOptions Options() {
    CudaBuilderOptions options;
    options.cache_directory = directory_.path() + "/cache";
    const char* bin = std::getenv("ASSAY_BIN_DIR");
    options.helper = absl::StrCat(bin == nullptr ? "bin" : bin, "/assay-nvrtc");
    return options;
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("cuda-builder-test");
};

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_DEVICE_BUILDER_FIXTURE_H_
