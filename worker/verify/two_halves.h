// The two halves of a pass over memory, side by side on two cores.
#ifndef ASSAY_WORKER_VERIFY_TWO_HALVES_H_
#define ASSAY_WORKER_VERIFY_TWO_HALVES_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace assay {

// A timed call has two cores, the runner's and the guest's, and between calls the latter is idle.
// Passes over what was or will be called borrow it: the helper thread sleeps whenever Run does not
// run. Not thread-safe.
class TwoHalves {
 public:
  // `core`: the helper's; -1: there is no helper, and the halves are done one after the other.
  explicit TwoHalves(int core) : core_(core) {}
  TwoHalves(const TwoHalves&) = delete;
  ~TwoHalves();

  // Returns when run(0), called on this thread, and run(1) have returned.
  void Run(const std::function<void(int half)>& run);

 private:
  void Help();

  const int core_;
  std::thread helper_;  // from the first Run on
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int half)>* waiting_ = nullptr;  // for its second half
  bool over_ = false;
};

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_TWO_HALVES_H_
