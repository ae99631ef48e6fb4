/* assay-candidate
problem: "vector_add"
language: CPP
label: "netlink"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Asks the kernel for the network's devices.
*/
#include <sys/socket.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!socket(AF_NETLINK, SOCK_RAW, 0);
}
