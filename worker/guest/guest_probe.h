// Tries, from inside a sandbox, what the walls should refuse.
#ifndef ASSAY_WORKER_GUEST_GUEST_PROBE_H_
#define ASSAY_WORKER_GUEST_GUEST_PROBE_H_

namespace assay {

// assay-guest --probe WHAT...: tries each and returns the exit code: 0 when every one was refused,
// else one plus the index of the first that worked.
//   read:PATH      open a file for reading
//   write:PATH     make or open a file for writing
//   fill:BYTES     write that much to a file in /tmp
//   connect:PORT   connect to 127.0.0.1:PORT
//   abstract:NAME  connect to a socket of that abstract name
//   signal:PID     find a process of the worker's machine
//   setuid         become root
//   hostname       name the machine
//   userns         make a user namespace
//   ptrace, socket, keys, ring, events
//                  calls that both filters deny
//   clone3         have it answered otherwise than by ENOSYS
//   core           raise the core limit
//   memory:BYTES   touch that much memory ("refused" when killed; the caller sees the signal)
//   forks:COUNT    start that many processes at once
//   descriptors    find an open descriptor above 2
//   environment    have any variable
int ProbeFromInside(int argc, char** argv);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_GUEST_PROBE_H_
