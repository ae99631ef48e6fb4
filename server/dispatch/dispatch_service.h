// DispatchService of assay.internal.v1 on the gRPC callback API. Handlers only hand over to the
// Dispatcher, which never blocks; a long poll whose caller went away is forgotten.
#ifndef ASSAY_SERVER_DISPATCH_DISPATCH_SERVICE_H_
#define ASSAY_SERVER_DISPATCH_DISPATCH_SERVICE_H_

#include <memory>

namespace grpc {
class Service;
}

namespace assay {

class AccessControl;
class Dispatcher;

// `dispatcher` must outlive the server that the service is registered with. Including
// <grpcpp/grpcpp.h> is the caller's job. `access` may be null, in tests: every worker is let in.
std::unique_ptr<grpc::Service> NewDispatchService(Dispatcher* dispatcher,
                                                  AccessControl* access = nullptr);

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_DISPATCH_SERVICE_H_
