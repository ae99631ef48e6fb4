// The least time that a workload can take on this machine: a roofline with measured rates. Pure.
#ifndef ASSAY_WORKER_CEILING_CEILING_H_
#define ASSAY_WORKER_CEILING_CEILING_H_

#include <string>

#include "kernels/problem.h"

namespace assay {

namespace v1 {
class Calibration;
class Ceiling;
}  // namespace v1

// Above this efficiency a time is not believed.
inline constexpr double kEfficiencyMax = 1.05;
// Of one sample: twice what was measured of the machine is more than any calibration is off.
inline constexpr double kSampleEfficiencyMax = 2;

// In place of a number of cores: a GPU.
inline constexpr int kWholeDevice = 0;

// A measured rate and how to name it.
struct Rate {
  double per_second = 0;  // 0: nothing applicable was measured
  std::string basis;      // "triad L2 1 core 41.2 GB/s"
};

// Bandwidth for traffic of which `written_share` is written, over `footprint_bytes`, on `cores`
// cores. Every choice errs towards the higher rate, so that no honest kernel is accused:
// * of the footprints measured, the highest rate at or above the largest one that is not above the
//   workload's (a larger footprint that measured faster counts too);
// * read, triad, copy and write stand for shares of 0, 1/3, 1/2 and 1; between two of them the
//   faster one counts;
// * pure reading is not held to be slower than triad or copy.
Rate MemoryRate(const v1::Calibration& calibration, double footprint_bytes, double written_share,
                int cores);

// Operations per second for a value of assay.v1.WorkModel.Unit, by the fastest unit that computes
// them; 0 for NONE, and for a unit of which no rate was measured, which the basis then says.
Rate ComputeRate(const v1::Calibration& calibration, int unit, int cores);

// time = max(memory, compute, launch). `launch_ns` is the measured handshake, or the calibration's
// launch_ns on a GPU: no timed call can be shorter.
void ComputeCeiling(const WorkCost& cost, const v1::Calibration& calibration, double launch_ns,
                    int cores, v1::Ceiling* ceiling);

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_CEILING_H_
