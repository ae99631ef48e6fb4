#include "store/sqlite/reader_pool.h"

#include <algorithm>

#include "base/status.h"

namespace assay {

absl::StatusOr<std::unique_ptr<ReaderPool>> ReaderPool::Open(const std::string& path, int count) {
  std::unique_ptr<ReaderPool> pool(new ReaderPool());
  for (int i = 0; i < std::max(count, 1); ++i) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                           Connection::Open(path, Connection::Role::kReader));
    pool->Return(connection.get());
    pool->connections_.push_back(std::move(connection));
  }
  return pool;
}

ReaderPool::Lease ReaderPool::Acquire() {
  absl::MutexLock lock(&mutex_);
  while (free_.empty()) freed_.Wait(&mutex_);
  Connection* connection = free_.back();
  free_.pop_back();
  return Lease(this, connection);
}

void ReaderPool::Return(Connection* connection) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(connection);
  freed_.Signal();
}

}  // namespace assay
