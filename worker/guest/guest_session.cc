#include "worker/guest/guest_session.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "base/cpu_caches.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "worker/guest/control_block.h"
#include "worker/guest/fault_report.h"
#include "worker/guest/guest_process.h"
#include "worker/guest/guest_protocol.h"
#include "worker/guest/process_accounting.h"
#include "worker/guest/tensor_memory.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

constexpr absl::Duration kSetupMax = absl::Seconds(60);  // sandbox and mapping of all tensors
constexpr absl::Duration kArmMax = absl::Seconds(60);  // only a machine out of breath takes longer
constexpr absl::Duration kReapMax = absl::Seconds(10);
constexpr absl::Duration kSleepMax = absl::Seconds(1);  // beyond the call's own limit
// How many looks at a word go between two looks at the clock: about a microsecond.
constexpr int kSpinsPerClockRead = 64;
constexpr size_t kSampledWords = 32;
constexpr int64_t kYieldAfterNs = 300'000;
constexpr int64_t kOwnWaitMaxNs = 1'000;
constexpr int64_t kHealthEveryNs = 1'000'000;  // looks at the guest's life and output

// CLOCK_MONOTONIC_RAW is not slewed; the vDSO reads it from the TSC in about 25 ns.
int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

int64_t DeadlineNs(absl::Duration timeout) {
  return NowNs() + absl::ToInt64Nanoseconds(std::min(timeout, absl::Hours(24)));
}

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("yield");
#endif
}

// The mapped control block and the descriptor that the guest gets.
struct ControlMemory {
  UniqueFd fd;
  GuestControlBlock* block = nullptr;

  ControlMemory() = default;
  ControlMemory(const ControlMemory&) = delete;
  ~ControlMemory() {
    if (block != nullptr) munmap(block, sizeof(GuestControlBlock));
  }

  absl::Status Make() {
    fd.Reset(memfd_create("assay-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd.valid()) return ErrnoError(errno, "memfd_create");
    if (ftruncate(fd.get(), sizeof(GuestControlBlock)) != 0) return ErrnoError(errno, "ftruncate");
    // Without these a guest could cut the page off and crash the runner.
    if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      return ErrnoError(errno, "sealing the control block");
    }
    void* memory = mmap(nullptr, sizeof(GuestControlBlock), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, fd.get(), 0);
    if (memory == MAP_FAILED) return ErrnoError(errno, "mmap of the control block");
    block = new (memory) GuestControlBlock();
    return absl::OkStatus();
  }
};

// A few words of the outputs, anywhere in them, as they stood at completion.
class OutputSample {
 public:
  // Chooses the words; they are read by Take.
  explicit OutputSample(const std::vector<std::unique_ptr<TensorMemory>>& tensors) {
    Random random(SecureRandom64());
    uint64_t words = 0;
    for (const auto& tensor : tensors) words += Words(*tensor);
    for (const volatile uint64_t*& word : words_) {
      if (words == 0) return;
      uint64_t at = random.Below(words);
      for (const auto& tensor : tensors) {
        if (at < Words(*tensor)) {
          word = reinterpret_cast<const volatile uint64_t*>(tensor->span().data()) + at;
          break;
        }
        at -= Words(*tensor);
      }
    }
  }

  void Take() {
    for (size_t i = 0; i < words_.size() && words_[i] != nullptr; ++i) bits_[i] = *words_[i];
  }

  bool HasChanged() const {
    for (size_t i = 0; i < words_.size() && words_[i] != nullptr; ++i) {
      if (*words_[i] != bits_[i]) return true;
    }
    return false;
  }

 private:
  static uint64_t Words(TensorMemory& tensor) {
    return tensor.writable() ? tensor.span().size() / sizeof(uint64_t) : 0;
  }

  std::array<const volatile uint64_t*, kSampledWords> words_ = {};
  std::array<uint64_t, kSampledWords> bits_ = {};
};

// Puts the calling thread on another core for as long as it lives. Does nothing for core -1, and
// where the machine refuses.
class CoreVisit {
 public:
  explicit CoreVisit(int core) {
    if (core < 0 || sched_getaffinity(0, sizeof(home_), &home_) != 0) return;
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(core, &there);
    visiting_ = sched_setaffinity(0, sizeof(there), &there) == 0;
    elsewhere_ = home_;
    CPU_CLR(core, &elsewhere_);
  }
  CoreVisit(const CoreVisit&) = delete;
  ~CoreVisit() {
    if (!visiting_) return;
    // Off that core at once, also where both may use it.
    if (CPU_COUNT(&elsewhere_) > 0) (void)sched_setaffinity(0, sizeof(elsewhere_), &elsewhere_);
    (void)sched_setaffinity(0, sizeof(home_), &home_);
  }

 private:
  bool visiting_ = false;
  cpu_set_t home_;
  cpu_set_t elsewhere_;
};

class Session : public GuestSession {
 public:
  explicit Session(const GuestOptions& options)
      : memory_bytes_max_(options.memory_bytes_max),
        load_timeout_(options.load_timeout),
        core_(options.core) {}

  absl::Status Open(const GuestOptions& options) {
    ASSAY_RETURN_IF_ERROR(control_.Make());
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
      return ErrnoError(errno, "socketpair");
    }
    socket_.Reset(sockets[0]);
    UniqueFd guest_socket(sockets[1]);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
    output_reader_.Reset(ends[0]);
    UniqueFd output_writer(ends[1]);
    if (fcntl(output_reader_.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoError(errno, "fcntl");
    ASSAY_ASSIGN_OR_RETURN(process_,
                           GuestProcess::Start(options, {{output_writer.get(), 1},
                                                         {output_writer.get(), 2},
                                                         {guest_socket.get(), kGuestSocketFd},
                                                         {control_.fd.get(), kGuestControlFd}}));
    return absl::OkStatus();
  }

  absl::Status Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                    const std::vector<int64_t>& axes) override;
  std::span<std::byte> Buffer(size_t index) override { return tensors_.at(index)->span(); }
  using GuestSession::Call;
  std::optional<CallTiming> Call(GuestCache cache, absl::Duration timeout,
                                 const std::function<void()>& once_armed) override {
    return Handshake(GuestAction::kInvoke, cache, timeout, once_armed);
  }
  std::optional<CallTiming> CallEmpty(GuestCache cache) override {
    return Handshake(GuestAction::kEmpty, cache, absl::Seconds(limits::kCallSeconds), nullptr);
  }
  const std::optional<GuestEnd>& ended() const override { return end_; }
  std::string output() override {
    if (!end_.has_value()) Drain();
    return CleanText(output_);
  }
  uint32_t fp_control_bits() const override {
    return control_.block->fp_control.load(std::memory_order_relaxed);
  }
  int pid() const override { return pid_; }
  const std::vector<std::string>& walls() const override { return process_->walls(); }
  const std::vector<std::string>& missing_walls() const override {
    return process_->missing_walls();
  }

 private:
  absl::Status SendSetup(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                         const std::vector<int64_t>& axes);
  absl::Status ReceiveLayout();
  absl::Status SetupFailure(const std::string& what);
  void WaitUntilLoaded();
  void PrepareOperands(GuestAction action, GuestCache cache);
  bool Arm(GuestAction action);
  std::optional<CallTiming> Handshake(GuestAction action, GuestCache cache, absl::Duration timeout,
                                      const std::function<void()>& once_armed);
  bool CanariesHold();
  bool Healthy();
  void Drain();
  void End(GuestFaultKind kind, std::string message);
  void Finish();

  // Spins until `seen()`. False when the guest ended or the time is up; then ended() is set.
  template <typename Seen>
  bool SpinUntil(Seen seen, int64_t deadline_ns, const char* what) {
    int64_t start_ns = 0;
    int64_t health_ns = 0;
    while (true) {
      for (int spin = 0; spin < kSpinsPerClockRead; ++spin) {
        if (seen()) return true;
        Pause();
      }
      const int64_t now_ns = NowNs();
      if (start_ns == 0) {
        start_ns = now_ns;
        health_ns = now_ns + kHealthEveryNs;
      }
      if (now_ns >= deadline_ns &&
          now_ns >= DeadlineWithoutWaits(start_ns, deadline_ns, WaitedNs())) {
        if (seen()) return true;
        End(GuestFaultKind::kTimedOut, absl::StrCat(what, " took longer than its limit"));
        return false;
      }
      if (now_ns >= health_ns) {
        health_ns = now_ns + kHealthEveryNs;
        if (!Healthy()) return false;
      }
      if (shares_core_ && now_ns - start_ns > kYieldAfterNs) sched_yield();
    }
  }

  // How long the guest wanted a core and had none since it slept last.
  int64_t WaitedNs() const {
    return accounting_.has_value() ? accounting_->Read().waited_ns - asleep_.waited_ns : 0;
  }

  const int64_t memory_bytes_max_;
  const absl::Duration load_timeout_;
  const int core_;
  ControlMemory control_;
  UniqueFd socket_;
  UniqueFd output_reader_;
  std::unique_ptr<GuestProcess> process_;
  std::optional<ProcessAccounting> accounting_;
  std::optional<ProcessAccounting> own_accounting_;  // of the thread that calls
  std::vector<std::unique_ptr<TensorMemory>> tensors_;
  // Of the end of each tensor, before a warm call, and before an empty one, which reads none of
  // them: there it is enough that the core's own caches hold what they hold before a warm call.
  std::vector<size_t> bytes_to_touch_;
  std::vector<size_t> bytes_before_empty_;
  std::vector<TensorPlace> places_;
  bool shares_core_ = true;  // the thread that calls may be in the guest's way
  bool loaded_ = false;
  int pid_ = 0;
  uint32_t command_ = 0;
  ProcessAccounting::Sample asleep_;  // of the guest, when it was last seen asleep
  std::string output_;
  std::optional<GuestEnd> end_;
};

absl::Status Session::SendSetup(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                                const std::vector<int64_t>& axes) {
  GuestSetup setup;
  setup.tensor_count = static_cast<uint32_t>(buffers.size());
  setup.axis_count = static_cast<uint32_t>(axes.size());
  std::vector<int> descriptors = {artifact_fd};
  uint64_t tensor_bytes = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    setup.tensors[i] = {buffers[i].bytes, buffers[i].writable ? 1u : 0u, 0};
    descriptors.push_back(tensors_[i]->guest_descriptor());
    tensor_bytes += TensorFileBytes(buffers[i].bytes) + 2 * kGuardBytes;
  }
  std::copy(axes.begin(), axes.end(), setup.axes);
  const std::vector<std::string>& walls = process_->walls();
  const bool by_cgroup = std::find(walls.begin(), walls.end(), kWallCgroupMemory) != walls.end();
  if (!by_cgroup && memory_bytes_max_ > 0) {
    setup.address_space_bytes = static_cast<uint64_t>(memory_bytes_max_) + tensor_bytes;
  }
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  iovec part{&setup, sizeof(setup)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != sizeof(setup)) {
    return SetupFailure(absl::StrCat("sending the setup: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status Session::SetupFailure(const std::string& what) {
  process_->Kill();
  const absl::StatusOr<SandboxExit> exit = process_->Wait(kReapMax);
  Drain();
  end_ = GuestEnd{};
  end_->message = absl::StrCat("the guest could not be set up: ", what);
  return absl::UnavailableError(absl::StrCat(
      end_->message, "; ",
      exit.ok() ? absl::StrCat("exit code ", exit->code) : std::string(exit.status().message()),
      output_.empty() ? "" : absl::StrCat("; it wrote: ", CleanText(output_))));
}

absl::Status Session::ReceiveLayout() {
  GuestLayout layout;
  pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {process_->end_descriptor(), POLLIN, 0}};
  int ready;
  do {
    ready = poll(entries, 2, static_cast<int>(absl::ToInt64Milliseconds(kSetupMax)));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return SetupFailure("it did not answer in time");
  if (recv(socket_.get(), &layout, sizeof(layout), MSG_DONTWAIT) != sizeof(layout)) {
    return SetupFailure("it ended");
  }
  for (size_t i = 0; i < places_.size(); ++i) places_[i].address = layout.tensor_address[i];
  return absl::OkStatus();
}

absl::Status Session::Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                           const std::vector<int64_t>& axes) {
  if (loaded_ || end_.has_value()) return absl::FailedPreconditionError("a session loads once");
  if (buffers.size() > kGuestTensorsMax || axes.size() > kGuestAxesMax) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kGuestTensorsMax, " tensors and ",
                                                   kGuestAxesMax, " axes; got ", buffers.size(),
                                                   " and ", axes.size()));
  }
  loaded_ = true;
  cpu_set_t own;
  shares_core_ =
      core_ < 0 || sched_getaffinity(0, sizeof(own), &own) != 0 || CPU_ISSET(core_, &own);
  std::vector<size_t> tensor_bytes;
  for (const GuestBuffer& buffer : buffers) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<TensorMemory> tensor,
                           TensorMemory::Create(buffer.bytes, buffer.writable));
    tensors_.push_back(std::move(tensor));
    places_.push_back({buffer, 0});
    tensor_bytes.push_back(buffer.bytes);
  }
  bytes_to_touch_ = BytesToTouch(tensor_bytes, LastLevelCacheBytes());
  bytes_before_empty_ = BytesToTouch(tensor_bytes, CoreCacheBytes());
  ASSAY_RETURN_IF_ERROR(SendSetup(artifact_fd, buffers, axes));
  ASSAY_RETURN_IF_ERROR(ReceiveLayout());
  socket_.Reset();
  const absl::StatusOr<int> pid = process_->CommandPid();
  if (!pid.ok()) return SetupFailure(std::string(pid.status().message()));
  pid_ = *pid;
  ASSAY_ASSIGN_OR_RETURN(own_accounting_, ProcessAccounting::OpenThisThread());
  absl::StatusOr<ProcessAccounting> accounting = ProcessAccounting::Open(pid_);
  // The candidate's own constructors may have ended it already.
  if (accounting.ok()) accounting_ = *std::move(accounting);
  WaitUntilLoaded();
  if (!end_.has_value() && !accounting_.has_value()) {
    return SetupFailure("its /proc entry cannot be read");
  }
  if (accounting_.has_value()) asleep_ = accounting_->Read();
  return absl::OkStatus();
}

void Session::WaitUntilLoaded() {
  const int64_t deadline_ns = DeadlineNs(load_timeout_);
  std::atomic<uint32_t>& state = control_.block->state;
  while (!end_.has_value()) {
    const uint32_t value = state.load(std::memory_order_acquire);
    if (value == static_cast<uint32_t>(GuestState::kLoaded)) return;
    const timespec step{0, 1'000'000};
    (void)syscall(SYS_futex, &state, FUTEX_WAIT, value, &step, nullptr, 0);
    if (!Healthy()) return;
    if (NowNs() >= deadline_ns) {
      End(GuestFaultKind::kTimedOut, "loading the artifact took longer than its limit");
    }
  }
}

// The guest sleeps meanwhile, so that it sees the inputs only when it may compute.
void Session::PrepareOperands(GuestAction action, GuestCache cache) {
  if (cache == GuestCache::kLeave) return;
  const bool is_empty = action == GuestAction::kEmpty;
  // Lines that are flushed are those of operands, which an empty call has nothing to do with.
  if (is_empty && cache == GuestCache::kCold) return;
  const CoreVisit visit(cache == GuestCache::kWarm ? core_ : -1);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (cache == GuestCache::kWarm) {
      tensors_[i]->Touch(is_empty ? bytes_before_empty_[i] : bytes_to_touch_[i]);
    } else {
      tensors_[i]->Flush();
    }
  }
}

bool Session::Arm(GuestAction action) {
  GuestControlBlock& block = *control_.block;
  block.action.store(static_cast<uint32_t>(action), std::memory_order_relaxed);
  const uint32_t command = ++command_;
  block.command.store(command, std::memory_order_release);
  (void)syscall(SYS_futex, &block.command, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  // The system calls above have cooled the code that reads the clock, which takes the time next:
  // the wait brings it back.
  const auto armed = [&] {
    return NowNs() > 0 && block.armed.load(std::memory_order_acquire) == command;
  };
  return SpinUntil(armed, DeadlineNs(kArmMax), "getting ready for the next call");
}

std::optional<CallTiming> Session::Handshake(GuestAction action, GuestCache cache,
                                             absl::Duration timeout,
                                             const std::function<void()>& once_armed) {
  if (end_.has_value() || !loaded_) return std::nullopt;
  GuestControlBlock& block = *control_.block;
  PrepareOperands(action, cache);
  const uint64_t turn = SecureRandom64() | 1;  // nobody can answer it ahead of time
  OutputSample sample(tensors_);
  const ProcessAccounting::Sample own_before = own_accounting_->Read();
  if (!Arm(action)) return std::nullopt;
  // From here to the next store no time is lost: what a guest computes meanwhile, on inputs that
  // are all there, is in no account.
  const int64_t armed_ns = NowNs();
  if (once_armed) once_armed();
  const int64_t go_ns = NowNs();
  block.go.store(turn, std::memory_order_release);
  const int64_t deadline_ns = DeadlineNs(timeout);
  const auto done = [&] { return block.done.load(std::memory_order_acquire) == turn; };
  if (!SpinUntil(done, deadline_ns, "the call")) return std::nullopt;
  const int64_t done_ns = NowNs();
  sample.Take();
  const auto asleep = [&] { return accounting_->Asleep(); };
  if (!SpinUntil(asleep, deadline_ns + absl::ToInt64Nanoseconds(kSleepMax), "returning")) {
    return std::nullopt;
  }
  const ProcessAccounting::Sample before = std::exchange(asleep_, accounting_->Read());
  CallTiming timing;
  timing.duration_ns = static_cast<double>(done_ns - go_ns);
  // It was put on a core once to be woken.
  timing.context_switches = std::max<int64_t>(0, asleep_.timeslices - before.timeslices - 1);
  timing.migrations = asleep_.core != before.core ? 1 : 0;
  const int64_t own_waited_ns = own_accounting_->Read().waited_ns - own_before.waited_ns;
  if (accounting_->has_schedstat() && own_waited_ns <= kOwnWaitMaxNs) {
    timing.outside_ns = static_cast<double>(asleep_.cpu_ns - before.cpu_ns - (done_ns - armed_ns));
  }
  Drain();
  if (!end_.has_value() && sample.HasChanged()) {
    End(GuestFaultKind::kHiddenWork, "an output changed after completion had been reported");
  }
  if (end_.has_value() || !CanariesHold()) return std::nullopt;
  return timing;
}

bool Session::CanariesHold() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i]->writable()) continue;
    const std::optional<int64_t> broken = tensors_[i]->BrokenCanary();
    if (!broken.has_value()) continue;
    const GuestBuffer& buffer = places_[i].buffer;
    End(GuestFaultKind::kCanaryBroken, absl::StrCat("wrote beside the output ", buffer.name,
                                                    " at byte ", *broken, " of ", buffer.bytes));
    end_->tensor = buffer.name;
    end_->byte_offset = *broken;
    return false;
  }
  return true;
}

bool Session::Healthy() {
  Drain();
  if (end_.has_value()) return false;
  if (!process_->Ended()) return true;
  Finish();
  return false;
}

void Session::Drain() {
  char buffer[16 << 10];
  while (true) {
    const ssize_t got = read(output_reader_.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const size_t room = limits::kGuestOutputBytesMax - output_.size();
    output_.append(buffer, std::min(room, static_cast<size_t>(got)));
    if (static_cast<size_t>(got) > room) {
      if (!end_.has_value()) {
        End(GuestFaultKind::kOutputFlood,
            absl::StrCat("wrote more than ", limits::kGuestOutputBytesMax, " bytes of output"));
      }
      return;
    }
  }
}

// Ends the guest for a reason seen from here.
void Session::End(GuestFaultKind kind, std::string message) {
  end_ = GuestEnd{};
  end_->kind = static_cast<int>(kind);
  end_->message = std::move(message);
  process_->Kill();
  const absl::StatusOr<SandboxExit> exit = process_->Wait(kReapMax);
  // A guest that waits for memory looks like one that takes long.
  if (exit.ok()) {
    LimitEvidence evidence;
    evidence.exit = *exit;
    evidence.timed_out = kind == GuestFaultKind::kTimedOut;
    evidence.output_over = kind == GuestFaultKind::kOutputFlood;
    if (std::optional<GuestEnd> limit = ExplainLimit(evidence); limit.has_value()) *end_ = *limit;
  }
  Drain();
}

// The guest ended by itself.
void Session::Finish() {
  const absl::StatusOr<SandboxExit> exit = process_->Wait(kReapMax);
  end_ = GuestEnd{};
  if (exit.ok()) {
    *end_ = ExplainExit(*exit, control_.block->fault, places_);
  } else {
    end_->message = std::string(exit.status().message());
  }
  Drain();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuestSession>> GuestSession::Start(const GuestOptions& options) {
  auto session = std::make_unique<Session>(options);
  ASSAY_RETURN_IF_ERROR(Annotate(session->Open(options), "starting a guest"));
  return std::unique_ptr<GuestSession>(std::move(session));
}

}  // namespace assay
