/* assay-candidate
problem: "vector_add"
language: CPP
label: "abstract_socket"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Binds a name without a file, which no mount
# namespace hides.
*/
#include <sys/socket.h>
#include <sys/un.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  address.sun_path[1] = 'x';
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  (void)!bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}
