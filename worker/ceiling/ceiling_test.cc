#include "worker/ceiling/ceiling.h"

#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/ceiling/calibrate.h"
#include "worker/ceiling/microbench.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

void AddPoint(const char* kernel, int cores, int64_t footprint, double rate, const char* level,
              v1::Calibration* calibration) {
  v1::CeilingPoint& point = *calibration->add_points();
  point.set_kernel(kernel);
  point.set_cores(cores);
  point.set_footprint_bytes(footprint);
  point.set_rate_per_second(rate);
  point.set_level(level);
}

// Round numbers in bytes/s: L1 100 G, L2 50 G, DRAM 10 G for reads; the other mixes a bit less.
v1::Calibration MakeCalibration() {
  v1::Calibration calibration;
  calibration.set_name("cal");
  const struct {
    const char* kernel;
    double factor;
  } mixes[] = {{"read", 1.0}, {"triad", 0.8}, {"copy", 0.7}, {"write", 0.6}};
  for (const auto& mix : mixes) {
    AddPoint(mix.kernel, 1, 16 << 10, 100e9 * mix.factor, "L1", &calibration);
    AddPoint(mix.kernel, 1, 256 << 10, 50e9 * mix.factor, "L2", &calibration);
    AddPoint(mix.kernel, 1, 64 << 20, 10e9 * mix.factor, "DRAM", &calibration);
    AddPoint(mix.kernel, 2, 64 << 20, 15e9 * mix.factor, "DRAM", &calibration);
  }
  AddPoint("fma_f32", 1, 0, 64e9, "", &calibration);
  AddPoint("fma_f64", 1, 0, 32e9, "", &calibration);
  AddPoint("madd_int8", 1, 0, 256e9, "", &calibration);
  return calibration;
}

TEST(CeilingTest, BandwidthByFootprintAndMix) {
  const v1::Calibration calibration = MakeCalibration();
  const struct {
    double footprint;
    double share;
    int cores;
    double rate;
    const char* basis;
  } rows[] = {
      {8 << 10, 0.0, 1, 100e9, "read L1"},  // below all footprints
      {16 << 10, 0.0, 1, 100e9, "read L1"},
      {255 << 10, 0.0, 1, 100e9, "read L1"},  // safe side: the level above
      {256 << 10, 0.0, 1, 50e9, "read L2"},
      {63 << 20, 1.0 / 3, 1, 40e9, "triad L2"},
      {64 << 20, 1.0 / 3, 1, 8e9, "triad DRAM 1 core 8.0 GB/s"},
      {1e12, 0.5, 1, 7e9, "copy DRAM"},
      {1e12, 1.0, 1, 6e9, "write DRAM"},
      {1e12, 0.2, 1, 10e9, "read DRAM"},   // between read and triad: the faster
      {1e12, 0.75, 1, 7e9, "copy DRAM"},   // between copy and write
      {1e12, 0.01, 1, 10e9, "read DRAM"},  // a reduction writes next to nothing
      {1e12, 0.0, 2, 15e9, "read DRAM 2 cores"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.basis);
    SCOPED_TRACE(row.footprint);
    const Rate rate = MemoryRate(calibration, row.footprint, row.share, row.cores);
    EXPECT_DOUBLE_EQ(rate.per_second, row.rate);
    EXPECT_THAT(rate.basis, HasSubstr(row.basis));
  }
}

TEST(CeilingTest, ALargerFootprintThatMeasuredFasterCounts) {
  v1::Calibration calibration;
  AddPoint("read", 1, 1024, 5e9, "L1", &calibration);  // disturbed
  AddPoint("read", 1, 4096, 9e9, "L2", &calibration);
  EXPECT_DOUBLE_EQ(MemoryRate(calibration, 1024, 0, 1).per_second, 9e9);
}

// One stream of reads gets less out of memory than three streams that write as well.
TEST(CeilingTest, ReadingIsNotHeldToBeSlowerThanTriad) {
  v1::Calibration calibration;
  AddPoint("read", 1, 1024, 14e9, "DRAM", &calibration);
  AddPoint("triad", 1, 1024, 23e9, "DRAM", &calibration);
  AddPoint("write", 1, 1024, 26e9, "DRAM", &calibration);
  EXPECT_DOUBLE_EQ(MemoryRate(calibration, 1e9, 0.001, 1).per_second, 23e9);
}

WorkCost Cost(int unit, double operations, double read, double written) {
  WorkCost cost;
  cost.unit = unit;
  cost.operations = operations;
  cost.bytes_read = read;
  cost.bytes_written = written;
  cost.footprint_bytes = read + written;
  return cost;
}

TEST(CeilingTest, TheLargestOfThreeTimesIsTheBound) {
  const v1::Calibration calibration = MakeCalibration();
  const struct {
    WorkCost cost;
    v1::Ceiling::Bound bound;
    double time_ns;
  } rows[] = {
      // 120 MB at triad DRAM 8 GB/s: 15 ms.
      {Cost(v1::WorkModel::FLOP_F32, 1e7, 80e6, 40e6), v1::Ceiling::MEMORY, 15e6},
      // 64 G operations at 64 G/s: 1 s.
      {Cost(v1::WorkModel::FLOP_F32, 64e9, 80e6, 40e6), v1::Ceiling::COMPUTE, 1e9},
      {Cost(v1::WorkModel::FLOP_F64, 32e9, 80e6, 40e6), v1::Ceiling::COMPUTE, 1e9},
      {Cost(v1::WorkModel::OP_INT8, 256e9, 80e6, 40e6), v1::Ceiling::COMPUTE, 1e9},
      // The same operations do not count without a unit.
      {Cost(v1::WorkModel::NONE, 64e9, 80e6, 40e6), v1::Ceiling::MEMORY, 15e6},
      // 1200 bytes at triad L1 80 GB/s: 15 ns, below the handshake.
      {Cost(v1::WorkModel::FLOP_F32, 100, 800, 400), v1::Ceiling::LAUNCH, 160},
  };
  for (const auto& row : rows) {
    v1::Ceiling ceiling;
    ComputeCeiling(row.cost, calibration, 160, 1, &ceiling);
    EXPECT_EQ(ceiling.bound(), row.bound) << ceiling.DebugString();
    EXPECT_NEAR(ceiling.time_ns(), row.time_ns, row.time_ns * 1e-9) << ceiling.DebugString();
    EXPECT_EQ(ceiling.calibration(), "cal");
    EXPECT_FALSE(ceiling.basis().empty());
  }
}

// A processor without units for it: the limit that is left holds, and says what it leaves out.
TEST(CeilingTest, AUnitWithoutARateIsNamed) {
  v1::Calibration calibration = MakeCalibration();
  const WorkCost cost = Cost(v1::WorkModel::FLOP_F16, 64e9, 80e6, 40e6);
  v1::Ceiling ceiling;
  ComputeCeiling(cost, calibration, 160, 1, &ceiling);
  EXPECT_EQ(ceiling.bound(), v1::Ceiling::MEMORY);
  EXPECT_NEAR(ceiling.time_ns(), 15e6, 1);
  EXPECT_EQ(ceiling.compute_time_ns(), 0);
  EXPECT_THAT(ceiling.basis(), HasSubstr("no measured rate of FLOP_F16"));

  AddPoint("mma_f16", 1, 0, 1e12, "", &calibration);
  ceiling.Clear();
  ComputeCeiling(cost, calibration, 160, 1, &ceiling);
  EXPECT_EQ(ceiling.bound(), v1::Ceiling::COMPUTE);
  EXPECT_NEAR(ceiling.time_ns(), 64e6, 1);
  EXPECT_EQ(ceiling.basis(), "mma_f16 1 core 1000.0 Gop/s");

  // Nothing is missing where nothing counts.
  ceiling.Clear();
  ComputeCeiling(Cost(v1::WorkModel::NONE, 64e9, 80e6, 40e6), calibration, 160, 1, &ceiling);
  EXPECT_EQ(ceiling.basis().find("no measured rate"), std::string::npos) << ceiling.basis();
}

// A GPU: 0 cores, the L2 above DRAM, tensor cores beside multiply-add.
TEST(CeilingTest, OfAWholeDeviceTheFastestUnitCounts) {
  v1::Calibration calibration;
  AddPoint("copy", kWholeDevice, 20 << 20, 4e12, "L2", &calibration);
  AddPoint("copy", kWholeDevice, 640 << 20, 2e12, "DRAM", &calibration);
  AddPoint("fma_f32", kWholeDevice, 0, 20e12, "", &calibration);
  AddPoint("fma_f64", kWholeDevice, 0, 10e12, "", &calibration);
  AddPoint("mma_tf32", kWholeDevice, 0, 150e12, "", &calibration);
  AddPoint("mma_f64", kWholeDevice, 0, 19e12, "", &calibration);
  AddPoint("mma_int8", kWholeDevice, 0, 600e12, "", &calibration);
  const struct {
    WorkCost cost;
    v1::Ceiling::Bound bound;
    double time_ns;
    const char* basis;
  } rows[] = {
      {Cost(v1::WorkModel::NONE, 0, 1e9, 1e9), v1::Ceiling::MEMORY, 1e6,
       "copy DRAM whole device 2000.0 GB/s"},
      {Cost(v1::WorkModel::NONE, 0, 10e6, 10e6), v1::Ceiling::MEMORY, 5e3, "copy L2 whole device"},
      {Cost(v1::WorkModel::FLOP_F32, 5e12, 1e3, 1e3), v1::Ceiling::COMPUTE, 1e8,
       "mma_tf32 by three products whole device 50000.0 Gop/s"},
      {Cost(v1::WorkModel::FLOP_F64, 19e12, 1e3, 1e3), v1::Ceiling::COMPUTE, 1e9,
       "mma_f64 whole device"},
      {Cost(v1::WorkModel::OP_INT8, 6e12, 1e3, 1e3), v1::Ceiling::COMPUTE, 1e7, "mma_int8"},
      {Cost(v1::WorkModel::FLOP_F32, 1e3, 1e3, 1e3), v1::Ceiling::LAUNCH, 2100,
       "launch of an empty kernel 2100 ns"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.basis);
    v1::Ceiling ceiling;
    ComputeCeiling(row.cost, calibration, 2100, kWholeDevice, &ceiling);
    EXPECT_EQ(ceiling.bound(), row.bound) << ceiling.DebugString();
    EXPECT_NEAR(ceiling.time_ns(), row.time_ns, row.time_ns * 1e-9) << ceiling.DebugString();
    EXPECT_THAT(ceiling.basis(), HasSubstr(row.basis));
  }
}

// An honest kernel that uses it would be faster than the limit.
TEST(CeilingTest, AUnitThatNobodyMeasuredLeavesNoLimit) {
  v1::Calibration calibration;
  AddPoint("copy", kWholeDevice, 640 << 20, 2e12, "DRAM", &calibration);
  AddPoint("fma_f32", kWholeDevice, 0, 20e12, "", &calibration);
  AddPoint("mma_f16", kWholeDevice, 0, 300e12, "", &calibration);
  AddPoint("mma_f64", kWholeDevice, 0, 19e12, "", &calibration);
  calibration.add_left_out("mma_bf16: no time left");
  calibration.add_left_out("fma_f16: sm_60 has none");
  const WorkCost half = Cost(v1::WorkModel::FLOP_F16, 300e12, 1e9, 1e9);
  v1::Ceiling ceiling;
  ComputeCeiling(half, calibration, 2100, kWholeDevice, &ceiling);
  EXPECT_EQ(ceiling.bound(), v1::Ceiling::COMPUTE);
  ceiling.Clear();
  ComputeCeiling(Cost(v1::WorkModel::FLOP_BF16, 300e12, 1e9, 1e9), calibration, 2100, kWholeDevice,
                 &ceiling);
  EXPECT_THAT(ceiling.basis(), HasSubstr("the rate of mma_bf16 was not measured"));
  calibration.add_left_out("wgmma: only mma.sync is measured");
  for (const auto& [unit, limited] :
       {std::pair(v1::WorkModel::FLOP_F16, false), std::pair(v1::WorkModel::FLOP_F32, false),
        std::pair(v1::WorkModel::FLOP_F64, true)}) {
    ceiling.Clear();
    ComputeCeiling(Cost(unit, 300e12, 1e9, 1e9), calibration, 2100, kWholeDevice, &ceiling);
    EXPECT_EQ(ceiling.compute_time_ns() > 0, limited) << unit;
    EXPECT_EQ(ceiling.basis().find("wgmma") == std::string::npos, limited) << ceiling.basis();
  }
}

TEST(CalibrationTest, TheFileOfAGpuFollowsCardAndDriver) {
  const std::string path = GpuCalibrationPath("/state", "01ab", 13000);
  EXPECT_EQ(path.rfind("/state/calibration-gpu-", 0), 0u) << path;
  EXPECT_NE(GpuCalibrationPath("/state", "01ac", 13000), path);
  EXPECT_NE(GpuCalibrationPath("/state", "01ab", 13010), path);
}

TEST(CalibrationTest, MergeKeepsTheHigherRatesAndRenames) {
  v1::Calibration known = MakeCalibration();
  v1::Calibration fresh;
  AddPoint("read", 1, 16 << 10, 120e9, "L1", &fresh);
  AddPoint("read", 1, 256 << 10, 1e9, "L2", &fresh);
  AddPoint("read", 1, 999, 7e9, "L1", &fresh);
  const int before = known.points_size();
  known.set_launch_ns(2500);
  fresh.set_launch_ns(2100);
  fresh.set_launch_interval_ns(1500);
  MergeCalibration(fresh, &known);
  EXPECT_EQ(known.launch_ns(), 2100);
  EXPECT_EQ(known.launch_interval_ns(), 1500);
  EXPECT_EQ(known.points_size(), before + 1);
  EXPECT_DOUBLE_EQ(known.points(0).rate_per_second(), 120e9);
  EXPECT_DOUBLE_EQ(known.points(1).rate_per_second(), 50e9);
  EXPECT_NE(known.name(), "cal");
}

TEST(CalibrationTest, IsStoredByMachine) {
  ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("calibration-test"));
  MachineFacts machine;
  machine.model_name = "A";
  const std::string path = CalibrationPath(folder.path(), machine, false);
  machine.microcode = "0x2";
  EXPECT_NE(CalibrationPath(folder.path(), machine, false), path);
  v1::Calibration loaded;
  EXPECT_THAT(LoadCalibration(path, &loaded), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK(SaveCalibration(path, MakeCalibration()));
  ASSERT_OK(LoadCalibration(path, &loaded));
  EXPECT_EQ(loaded.SerializeAsString(), MakeCalibration().SerializeAsString());
  ASSERT_OK(WriteFileAtomically(path, "\xff garbage"));
  EXPECT_THAT(LoadCalibration(path, &loaded), StatusIs(absl::StatusCode::kNotFound));
}

TEST(CalibrationTest, MeasuresEveryKernelOnThisMachine) {
  CalibrateOptions options;
  options.machine = ReadMachineFacts("");
  options.point_time = absl::Microseconds(200);
  options.footprint_bytes_max = 4 << 20;
  v1::Calibration calibration;
  ASSERT_OK(Calibrate(options, &calibration));
  for (const char* kernel : {"read", "write", "copy", "triad", "fma_f32", "fma_f64", "madd_int8"}) {
    SCOPED_TRACE(kernel);
    int found = 0;
    for (const v1::CeilingPoint& point : calibration.points()) {
      if (point.kernel() != kernel || point.cores() != 1) continue;
      ++found;
      // Plausible for any machine: no loop was optimised away, none is absurdly slow.
      EXPECT_GT(point.rate_per_second(), 1e8);
      EXPECT_LT(point.rate_per_second(), 1e13);
    }
    EXPECT_GT(found, 0);
  }
  EXPECT_THAT(calibration.method(), HasSubstr("assay-microbench-v1"));
}

TEST(MicrobenchTest, StreamsComputeWhatTheySay) {
  constexpr size_t kCount = 3 * kStreamBlock;
  alignas(64) double a[kCount];
  alignas(64) double b[kCount];
  alignas(64) double c[kCount];
  const MicrobenchSet* sets[3];
  const size_t count = RunnableMicrobenches(sets);
  for (size_t s = 0; s < count; ++s) {
    SCOPED_TRACE(sets[s]->name);
    for (size_t i = 0; i < kCount; ++i) {
      b[i] = static_cast<double>(i);
      c[i] = 2.0 * static_cast<double>(i);
    }
    EXPECT_DOUBLE_EQ(sets[s]->read(b, kCount), kCount * (kCount - 1) / 2.0);
    for (const auto triad : {sets[s]->triad, sets[s]->triad_nt}) {
      triad(a, b, c, 0.5, kCount);
      for (size_t i = 0; i < kCount; ++i) ASSERT_DOUBLE_EQ(a[i], 2.0 * static_cast<double>(i));
    }
    for (const auto copy : {sets[s]->copy, sets[s]->copy_nt}) {
      copy(a, c, kCount);
      for (size_t i = 0; i < kCount; ++i) ASSERT_DOUBLE_EQ(a[i], c[i]);
    }
    for (const auto write : {sets[s]->write, sets[s]->write_nt}) {
      write(a, 7.0, kCount);
      for (size_t i = 0; i < kCount; ++i) ASSERT_DOUBLE_EQ(a[i], 7.0);
    }
  }
}

}  // namespace
}  // namespace assay
