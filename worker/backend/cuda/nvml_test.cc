#include "worker/backend/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/testing/fake_nvml.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr int kNotSupported = 3;
constexpr cuda::CUuuid kUuid = {{0x01, 0x23, 0x45, 0x67, static_cast<char>(0x89),
                                 static_cast<char>(0xab), static_cast<char>(0xcd),
                                 static_cast<char>(0xef), 0, 1, 2, 3, 4, 5, 6, 7}};
constexpr char kUuidText[] = "01234567-89ab-cdef-0001-020304050607";

// The state of the library at `path`, as it is at first.
FakeNvml* FreshFake(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) ADD_FAILURE() << dlerror();
  const auto function = reinterpret_cast<FakeNvmlFunction>(dlsym(library, "assayFakeNvml"));
  FakeNvml* const fake = function();
  *fake = FakeNvml();
  fake->uuid = std::string("GPU-") + kUuidText;
  fake->pci_bus_id = "0000:65:00.0";
  return fake;
}

Nvml::Options OptionsFor(const char* path) {
  Nvml::Options options;
  options.library = path;
  options.uuid = kUuid;
  options.pci_bus_id = "0000:65:00.0";
  return options;
}

TEST(NvmlTest, TellsHealthAndFacts) {
  FakeNvml* const fake = FreshFake(ASSAY_FAKE_NVML);
  fake->reasons = kThrottlePowerCap;
  fake->ecc_errors = 2;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Nvml> nvml, Nvml::Open(OptionsFor(ASSAY_FAKE_NVML)));
    const std::optional<DeviceHealth> health = nvml->Sample();
    ASSERT_TRUE(health.has_value());
    EXPECT_EQ(health->sm_clock_mhz, 1410);
    EXPECT_EQ(health->memory_clock_mhz, 1593);
    EXPECT_EQ(health->temperature_c, 41);
    EXPECT_DOUBLE_EQ(health->power_w, 87.5);
    EXPECT_EQ(health->throttle_bits, kThrottlePowerCap | 0x1000);
    const NvmlFacts facts = nvml->Facts();
    EXPECT_EQ(facts.driver_version, "575.1");
    EXPECT_EQ(facts.persistence_mode, true);
    EXPECT_EQ(facts.mig_mode, false);
    EXPECT_EQ(facts.uncorrected_ecc_errors, 2u);
    EXPECT_EQ(facts.power_limit_w, 400);
    EXPECT_EQ(facts.sm_clock_max_mhz, 1980);
    EXPECT_EQ(fake->starts, 1);
  }
  EXPECT_EQ(fake->stops, 1);
}

TEST(NvmlTest, AnOldLibraryTellsWhatItHas) {
  FakeNvml* const fake = FreshFake(ASSAY_FAKE_NVML_OLD_LIBRARY);
  fake->reasons = kThrottleHardwareThermal;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Nvml> nvml,
                       Nvml::Open(OptionsFor(ASSAY_FAKE_NVML_OLD_LIBRARY)));
  const std::optional<DeviceHealth> health = nvml->Sample();
  ASSERT_TRUE(health.has_value());
  EXPECT_EQ(health->sm_clock_mhz, 0);
  EXPECT_EQ(health->temperature_c, 41);
  EXPECT_EQ(health->power_w, 0);
  EXPECT_EQ(health->throttle_bits, kThrottleHardwareThermal);
  const NvmlFacts facts = nvml->Facts();
  EXPECT_EQ(facts.driver_version, "");
  EXPECT_EQ(facts.persistence_mode, std::nullopt);
  EXPECT_EQ(facts.mig_mode, std::nullopt);
  EXPECT_EQ(facts.uncorrected_ecc_errors, std::nullopt);
  EXPECT_EQ(nvml->OtherProcesses(), std::nullopt);
}

TEST(NvmlTest, WhatIsNotSupportedIsNotTold) {
  FakeNvml* const fake = FreshFake(ASSAY_FAKE_NVML);
  fake->result = kNotSupported;
  fake->process_result = kNotSupported;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Nvml> nvml, Nvml::Open(OptionsFor(ASSAY_FAKE_NVML)));
  EXPECT_EQ(nvml->Sample(), std::nullopt);
  EXPECT_EQ(nvml->Facts().persistence_mode, std::nullopt);
  EXPECT_EQ(nvml->Facts().uncorrected_ecc_errors, std::nullopt);
  EXPECT_EQ(nvml->OtherProcesses(), std::nullopt);
}

TEST(NvmlTest, FindsTheDeviceByUuidOfDeviceOrSliceAndThenByBus) {
  const struct {
    std::string uuid;
    std::string bus;
    bool found;
  } rows[] = {{std::string("GPU-") + kUuidText, "", true},
              {std::string("MIG-") + kUuidText, "", true},
              {"", "0000:65:00.0", true},
              {"GPU-00000000-0000-0000-0000-000000000000", "0000:17:00.0", false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.uuid + row.bus);
    FakeNvml* const fake = FreshFake(ASSAY_FAKE_NVML);
    fake->uuid = row.uuid;
    fake->pci_bus_id = row.bus;
    const auto nvml = Nvml::Open(OptionsFor(ASSAY_FAKE_NVML));
    EXPECT_EQ(nvml.ok(), row.found) << nvml.status();
    if (row.found) continue;
    EXPECT_THAT(nvml.status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("0000:65:00.0")));
    EXPECT_THAT(nvml.status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(kUuidText)));
    EXPECT_EQ(fake->stops, 1);
  }
}

TEST(NvmlTest, ListsOtherProcessesHoweverMany) {
  FakeNvml* const fake = FreshFake(ASSAY_FAKE_NVML);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Nvml> nvml, Nvml::Open(OptionsFor(ASSAY_FAKE_NVML)));
  std::optional<std::vector<GpuProcess>> others = nvml->OtherProcesses();
  ASSERT_TRUE(others.has_value());
  EXPECT_TRUE(others->empty());
  fake->processes = {{static_cast<unsigned>(getpid()), 1 << 20}, {7, ~0ull}, {5, 1 << 30}};
  others = nvml->OtherProcesses();
  ASSERT_TRUE(others.has_value());
  EXPECT_THAT(*others, ElementsAre(Field(&GpuProcess::pid, 5u), Field(&GpuProcess::pid, 7u)));
  EXPECT_EQ((*others)[0].memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ((*others)[1].memory_bytes, std::nullopt);
  fake->processes.assign(100, {9, 0});
  others = nvml->OtherProcesses();
  ASSERT_TRUE(others.has_value());
  EXPECT_EQ(others->size(), 100u);
}

TEST(NvmlTest, SaysWhyItCannotBeUsed) {
  EXPECT_THAT(Nvml::Open(OptionsFor("/nowhere/libnvidia-ml.so.1")).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("NVIDIA driver")));
  EXPECT_THAT(Nvml::Open(OptionsFor("libc.so.6")).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no NVML")));
  FakeNvml* const fake = FreshFake(ASSAY_FAKE_NVML);
  fake->init_result = 9;
  EXPECT_THAT(Nvml::Open(OptionsFor(ASSAY_FAKE_NVML)).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("error 9")));
  EXPECT_EQ(fake->stops, 0);
}

TEST(NvmlTest, NamesThrottleReasons) {
  EXPECT_EQ(ThrottleText(0), "none");
  EXPECT_EQ(ThrottleText(kThrottlePowerCap | kThrottleHardwareThermal),
            "power cap, hardware thermal");
  EXPECT_EQ(ThrottleText(kThrottleIdle | 0x1000), "idle, 0x1000");
}

}  // namespace
}  // namespace assay
