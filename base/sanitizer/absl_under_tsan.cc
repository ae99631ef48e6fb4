// Tells ThreadSanitizer about absl's synchronization. Linked into every program of a
// thread-sanitized build.
//
// The distribution's Abseil is not instrumented, so that the sanitizer would see every access under
// an absl::Mutex as a race. These definitions stand in front of the shared library's, and so serve
// gRPC as well: they forward to it and say what happened before what. Conditions may be evaluated
// by whichever thread holds the mutex, inside the library and after this thread's release was said,
// so accesses in there are not looked at.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/base/config.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace {

// The next definition of a mangled name, in which '@' stands for the inline namespace of this
// Abseil.
void* FindNext(const char* name) {
  constexpr char kInlineNamespace[] = ABSL_INTERNAL_TOKEN_STR(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const char* at = std::strchr(name, '@');
  char symbol[256];
  std::snprintf(symbol, sizeof(symbol), "%.*s%d%s%s", static_cast<int>(at - name), name,
                static_cast<int>(sizeof(kInlineNamespace) - 1), kInlineNamespace, at + 1);
  void* function = dlsym(RTLD_NEXT, symbol);
  if (function == nullptr) {
    std::fprintf(stderr, "absl_under_tsan: no %s in the shared libraries\n", symbol);
    std::abort();
  }
  return function;
}

// A member function takes `this` as its first argument, as a free function would.
template <typename Result, typename... Arguments>
Result Forward(void* function, Arguments... arguments) {
  struct Unwatched {
    Unwatched() {
      AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
      AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~Unwatched() {
      AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
      AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
  } unwatched;
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

}  // namespace

#define ASSAY_NEXT(result, name, ...)              \
  [&]() -> result {                                \
    static void* const function = FindNext(name);  \
    return Forward<result>(function, __VA_ARGS__); \
  }()

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  ASSAY_NEXT(void, "_ZN4absl@5Mutex4LockEv", this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  __tsan_release(this);
  ASSAY_NEXT(void, "_ZN4absl@5Mutex6UnlockEv", this);
}

bool Mutex::TryLock() {
  const bool locked = ASSAY_NEXT(bool, "_ZN4absl@5Mutex7TryLockEv", this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  ASSAY_NEXT(void, "_ZN4absl@5Mutex10ReaderLockEv", this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  __tsan_release(this);
  ASSAY_NEXT(void, "_ZN4absl@5Mutex12ReaderUnlockEv", this);
}

void Mutex::LockWhen(const Condition& condition) {
  ASSAY_NEXT(void, "_ZN4absl@5Mutex8LockWhenERKNS0_9ConditionE", this, &condition);
  __tsan_acquire(this);
}

void Mutex::Await(const Condition& condition) {
  __tsan_release(this);
  ASSAY_NEXT(void, "_ZN4absl@5Mutex5AwaitERKNS0_9ConditionE", this, &condition);
  __tsan_acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  __tsan_release(this);
  const bool met =
      ASSAY_NEXT(bool, "_ZN4absl@5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE", this,
                 &condition, timeout);
  __tsan_acquire(this);
  return met;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  __tsan_release(this);
  const bool met =
      ASSAY_NEXT(bool, "_ZN4absl@5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE", this,
                 &condition, deadline);
  __tsan_acquire(this);
  return met;
}

void CondVar::Wait(Mutex* mutex) {
  __tsan_release(mutex);
  ASSAY_NEXT(void, "_ZN4absl@7CondVar4WaitEPNS0_5MutexE", this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  __tsan_release(mutex);
  const bool timed_out = ASSAY_NEXT(
      bool, "_ZN4absl@7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE", this, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  __tsan_release(mutex);
  const bool timed_out = ASSAY_NEXT(
      bool, "_ZN4absl@7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

void Notification::Notify() {
  __tsan_release(this);
  ASSAY_NEXT(void, "_ZN4absl@12Notification6NotifyEv", this);
}

void Notification::WaitForNotification() const {
  ASSAY_NEXT(void, "_ZNK4absl@12Notification19WaitForNotificationEv", this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  const bool notified =
      ASSAY_NEXT(bool, "_ZNK4absl@12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
                 this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool BlockingCounter::DecrementCount() {
  __tsan_release(this);
  return ASSAY_NEXT(bool, "_ZN4absl@15BlockingCounter14DecrementCountEv", this);
}

void BlockingCounter::Wait() {
  ASSAY_NEXT(void, "_ZN4absl@15BlockingCounter4WaitEv", this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
