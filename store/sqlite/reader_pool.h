// A few read-only connections that callers take in turn. Thread-safe; every lease must end before
// the pool does.
#ifndef ASSAY_STORE_SQLITE_READER_POOL_H_
#define ASSAY_STORE_SQLITE_READER_POOL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "store/sqlite/connection.h"

namespace assay {

class ReaderPool {
 public:
  // A connection for the sole use of its holder.
  class Lease {
   public:
    Lease(ReaderPool* pool, Connection* connection) : pool_(pool), connection_(connection) {}
    Lease(Lease&& other) noexcept
        : pool_(other.pool_), connection_(std::exchange(other.connection_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) pool_->Return(connection_);
    }
    Connection& operator*() const { return *connection_; }
    Connection* operator->() const { return connection_; }

   private:
    ReaderPool* pool_;
    Connection* connection_;
  };

  // `count` at least 1. The database must exist.
  static absl::StatusOr<std::unique_ptr<ReaderPool>> Open(const std::string& path, int count);

  // Blocks until a connection is free.
  Lease Acquire() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ReaderPool() = default;
  void Return(Connection* connection) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::unique_ptr<Connection>> connections_;
  absl::Mutex mutex_;
  absl::CondVar freed_;
  std::vector<Connection*> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_READER_POOL_H_
