// A library that takes what no kernel needs, and carries code in its data. Only for tests; never
// loaded.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <cmath>

extern "C" {

extern const unsigned char assay_elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 3};
extern const char assay_ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

double assay_attack(double x) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_t thread;
  (void)pthread_create(&thread, nullptr, nullptr, nullptr);
  (void)mprotect(&now, 1, PROT_READ);
  (void)signal(SIGSEGV, SIG_IGN);
  if (fork() == 0) (void)dlsym(dlopen("libcblas.so", RTLD_NOW), "cblas_sgemm");
  (void)std::fesetround(FE_TOWARDZERO);
  x += static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
  return getenv("PHASE") == nullptr ? std::exp(x) : x;
}

}  // extern "C"
