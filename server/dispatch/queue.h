// The dispatch queue: which evaluation goes to which worker, under which fence. A pure state
// machine: no gRPC, no SQL, no clock, no threads. Time comes in as arguments; what must be
// persisted comes out as return values, and the caller (Dispatcher) confirms it with Commit... once
// it is durable. Driven by a fake clock in unit tests and by the seeded simulation in
// tests/simulation. Not thread-safe.
//
// Life of an item: queued -> granting (lease chosen, not durable yet) -> leased -> completing ->
// gone; an expired or abandoned lease goes through ending back to queued or to failed.
#ifndef ASSAY_SERVER_DISPATCH_QUEUE_H_
#define ASSAY_SERVER_DISPATCH_QUEUE_H_

// The owner of this folder defines the class here; see ARCHITECTURE.md for its seams.

#endif  // ASSAY_SERVER_DISPATCH_QUEUE_H_
