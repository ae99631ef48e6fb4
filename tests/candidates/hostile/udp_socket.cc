/* assay-candidate
problem: "vector_add"
language: CPP
label: "udp_socket"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Sends a datagram.
*/
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)!sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}
