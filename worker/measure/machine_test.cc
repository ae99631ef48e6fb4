#include "worker/measure/machine.h"

#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr char kCpuInfo[] =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 1\n"
    "model name\t: AMD EPYC\nmicrocode\t: 0x1000065\n"
    "flags\t\t: fpu sse4_2 avx fma f16c avx2 bmi2 hypervisor\n\n"
    "processor\t: 1\nvendor_id\t: Other\nmodel name\t: Second\n";

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("machine-test"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
    Write("/proc/cpuinfo", kCpuInfo);
  }
  void Write(const std::string& path, const std::string& text) {
    const std::string full = folder_->path() + path;
    ASSERT_OK(CreateDirectories(full.substr(0, full.rfind('/'))));
    ASSERT_OK(WriteFileAtomically(full, text));
  }
  MachineFacts Read() { return ReadMachineFacts(folder_->path()); }

  std::unique_ptr<TemporaryDirectory> folder_;
};

TEST_F(MachineTest, NamesTheFirstProcessor) {
  const MachineFacts facts = Read();
  EXPECT_EQ(facts.model_name, "AMD EPYC");
  EXPECT_EQ(facts.microcode, "0x1000065");
  EXPECT_EQ(DeviceClassName(facts), "cpu-amd-f23m1-avx2");
  EXPECT_EQ(InstructionSet(facts), "x86_64 sse4_2 avx avx2 fma f16c bmi2");
}

TEST_F(MachineTest, IsaLevels) {
  MachineFacts facts = Read();
  facts.flags = {"avx2"};
  EXPECT_EQ(IsaLevel(facts), "base");  // without fma
  facts.flags = {"avx2", "fma", "avx512f", "avx512bw", "avx512dq"};
  EXPECT_EQ(IsaLevel(facts), "avx2");
  facts.flags.insert("avx512vl");
  EXPECT_EQ(IsaLevel(facts), "avx512");
  facts.vendor = "GenuineIntel";
  EXPECT_EQ(DeviceClassName(facts), "cpu-intel-f23m1-avx512");
}

TEST_F(MachineTest, WhatCannotBeReadIsACaveat) {
  EXPECT_THAT(Read().caveats,
              ::testing::IsSupersetOf({"GOVERNOR_UNKNOWN", "NOT_ISOLATED", "SMT_UNKNOWN",
                                       "TURBO_UNKNOWN", "VIRTUALIZED"}));
}

TEST_F(MachineTest, AWellPreparedMachineHasNoneOfThese) {
  const std::string cpus = "/sys/devices/system/cpu";
  Write(cpus + "/cpufreq/boost", "0\n");
  Write(cpus + "/cpu0/cpufreq/scaling_governor", "performance\n");
  Write(cpus + "/isolated", "1\n");
  Write(cpus + "/smt/active", "0\n");
  for (const char* caveat : {"GOVERNOR_UNKNOWN", "NOT_ISOLATED", "SMT_UNKNOWN", "TURBO_UNKNOWN",
                             "TURBO_ON", "SMT_ON", "GOVERNOR_NOT_PERFORMANCE"}) {
    EXPECT_THAT(Read().caveats, Not(Contains(caveat)));
  }
  Write(cpus + "/cpufreq/boost", "1\n");
  Write(cpus + "/cpu0/cpufreq/scaling_governor", "powersave\n");
  Write(cpus + "/smt/active", "1\n");
  EXPECT_THAT(Read().caveats,
              ::testing::IsSupersetOf({"TURBO_ON", "SMT_ON", "GOVERNOR_NOT_PERFORMANCE"}));
}

TEST_F(MachineTest, ReadsDataCaches) {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index3";
  Write(folder + "/level", "3");
  Write(folder + "/type", "Unified");
  Write(folder + "/size", "8M");
  EXPECT_EQ(Read().caches.l3_bytes, 8 << 20);
}

TEST(PlaceCoresTest, TwoDifferentCoresOrNone) {
  MachineFacts facts;
  facts.cores = {0};
  EXPECT_EQ(PlaceCores(facts).guest_core, -1);
  facts.cores = {0, 1, 6, 7};
  EXPECT_EQ(PlaceCores(facts).guest_core, 7);
  EXPECT_EQ(PlaceCores(facts).runner_core, 6);
}

}  // namespace
}  // namespace assay
