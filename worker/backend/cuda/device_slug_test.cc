#include "worker/backend/cuda/device_slug.h"

#include "gtest/gtest.h"
#include "worker/backend/cuda/emulated_arch.h"

namespace assay {
namespace {

TEST(DeviceSlugTest, NamesFoldersByDevice) {
  EXPECT_EQ(DeviceSlug("NVIDIA H200"), "nvidia-h200");
  EXPECT_EQ(DeviceSlug("NVIDIA A100-SXM4-80GB"), "nvidia-a100-sxm4-80gb");
  EXPECT_EQ(DeviceSlug("../ GeForce RTX 4090 (x)"), "geforce-rtx-4090-x");
  EXPECT_EQ(DeviceSlug("///"), "unknown");
}

TEST(EmulatedArchTest, TheNearestCapabilityThatIsNotAboveStandsForADevice) {
  const struct {
    int capability;
    int want;
  } cases[] = {{75, 75}, {80, 80}, {86, 86}, {88, 87}, {89, 89}, {90, 90}, {101, 100}, {130, 121}};
  for (const auto& c : cases) EXPECT_EQ(EmulatedArchFor(c.capability), c.want) << c.capability;
}

}  // namespace
}  // namespace assay
