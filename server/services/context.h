// What the services of the public API share. Everything is owned by the wiring (server/server.h)
// and outlives the services.
#ifndef ASSAY_SERVER_SERVICES_CONTEXT_H_
#define ASSAY_SERVER_SERVICES_CONTEXT_H_

#include <memory>

namespace grpc {
class Service;
}

namespace assay {

class AccessControl;
class Admission;
class CandidateCache;
class Catalogue;
class Clock;
class Dispatcher;
class Executor;
class Metrics;
class Store;
class WatchHub;
class WriteBudget;

struct ServiceContext {
  Clock* clock = nullptr;
  Store* store = nullptr;
  Dispatcher* dispatcher = nullptr;
  Executor* reads = nullptr;
  // Finishes creations, so that the store's writer goes on with the next group meanwhile.
  Executor* replies = nullptr;
  WriteBudget* writes = nullptr;
  Catalogue* catalogue = nullptr;
  CandidateCache* candidates = nullptr;
  const Admission* admission = nullptr;
  WatchHub* watches = nullptr;
  Metrics* metrics = nullptr;
  AccessControl* access = nullptr;  // null, in tests alone: everything is allowed
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_CONTEXT_H_
