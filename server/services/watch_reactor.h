// One WatchEvaluation stream. Only for evaluation_service.cc.
#ifndef ASSAY_SERVER_SERVICES_WATCH_REACTOR_H_
#define ASSAY_SERVER_SERVICES_WATCH_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "assay/v1/evaluation.pb.h"
#include "server/access/access_control.h"
#include "server/services/context.h"
#include "server/services/watch_hub.h"

namespace assay {

// Owns itself until gRPC is done with it. Thread-safe. Subscribes first and reads the stored state
// second, so that no change falls between. At most one write is outstanding; what changes meanwhile
// merges in the cursor.
class WatchReactor final : public grpc::ServerWriteReactor<v1::WatchEvaluationResponse>,
                           public WatchHub::Subscriber,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  static WatchReactor* Start(const ServiceContext& services,
                             const grpc::CallbackServerContext& context,
                             const v1::WatchEvaluationRequest& request);

  WatchReactor(const ServiceContext& services, std::shared_ptr<CallAccess> caller, std::string name,
               int64_t after_revision);

  void OnChange(EvaluationSnapshot snapshot) override;
  void OnAccessChange() override;
  void OnHubShutdown() override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  absl::Status Open(const v1::WatchEvaluationRequest& request);
  void ReadStored();
  void Close(const absl::Status& status);
  // Writes, finishes or waits, whatever is due. Without the lock held.
  void Advance();

  const ServiceContext services_;
  const std::shared_ptr<CallAccess> caller_;  // null: anybody
  const std::string name_;
  const absl::Duration start_;
  const int64_t after_revision_;
  std::shared_ptr<WatchReactor> self_;
  bool has_slot_ = false;  // set by Open, before anything is shared

  absl::Mutex mutex_;
  WatchCursor cursor_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status close_status_ ABSL_GUARDED_BY(mutex_);
  // Belongs to gRPC while writing_.
  v1::WatchEvaluationResponse response_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_WATCH_REACTOR_H_
