// What the fake NVML library answers. A test loads the library by its path, as the code under test
// does, and edits the state that assayFakeNvml returns. Only for tests.
#ifndef ASSAY_WORKER_TESTING_FAKE_NVML_H_
#define ASSAY_WORKER_TESTING_FAKE_NVML_H_

#include <string>
#include <vector>

namespace assay {

struct FakeNvml {
  std::string uuid;        // the only one that is known
  std::string pci_bus_id;  // likewise
  int init_result = 0;
  int result = 0;  // of every question about the device; 3 is NOT_SUPPORTED
  int process_result = 0;
  unsigned sm_mhz = 1410;
  unsigned memory_mhz = 1593;
  unsigned celsius = 41;
  unsigned milliwatts = 87'500;
  unsigned long long reasons = 0;
  unsigned persistence = 1;
  unsigned mig = 0;
  unsigned long long ecc_errors = 0;
  struct Process {
    unsigned pid;
    unsigned long long memory;
  };
  std::vector<Process> processes;
  // What was called.
  int starts = 0;
  int stops = 0;
};

// Exported by the library under the name "assayFakeNvml".
using FakeNvmlFunction = FakeNvml* (*)();

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_FAKE_NVML_H_
