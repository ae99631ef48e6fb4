/* assay-candidate
problem: "vector_add"
language: CPP
label: "has_include"
# Expected: PASSED. Asks which files the host has; does not compile where it learns any.
*/
#if __has_include("/etc/passwd") ||                           \
                  __has_include("/proc/self/environ") ||      \
                                __has_include("/dev/zero") || \
                                              __has_include("../../../../root/.bashrc")
#error found
#endif
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
