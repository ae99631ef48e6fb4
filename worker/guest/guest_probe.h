// Tries, from inside a sandbox, what the walls should refuse.
#ifndef ASSAY_WORKER_GUEST_GUEST_PROBE_H_
#define ASSAY_WORKER_GUEST_GUEST_PROBE_H_

namespace assay {

// assay-guest --probe WHAT...: tries each and returns the exit code: 0 when every one was refused,
// else one plus the index of the first that worked.
//   read:PATH      open a file for reading
//   connect:PORT   connect to 127.0.0.1:PORT
//   userns         make a user namespace
//   ptrace         a call that the compile filter denies
//   socket         a call that the guest filter denies
//   core           raise the core limit
//   memory:BYTES   touch that much memory ("refused" when killed; the caller sees the signal)
//   forks:COUNT    start that many processes at once
//   descriptors    find an open descriptor above 2
//   environment    have any variable
int ProbeFromInside(int argc, char** argv);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_GUEST_PROBE_H_
