// The fake CUDA driver, as it is in a fresh process, and candidates for the problem "triple" on it.
// Only for tests.
#ifndef ASSAY_WORKER_TESTING_CUDA_FIXTURE_H_
#define ASSAY_WORKER_TESTING_CUDA_FIXTURE_H_

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "assay/v1/candidate.pb.h"
#include "gtest/gtest.h"
#include "worker/testing/fake_cuda.h"

namespace assay {

// In the folder beside that of the programs.
inline std::string TestLibrary(std::string_view name) {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  return absl::StrCat(folder == nullptr ? "bin" : folder, "/../testing/", std::string(name));
}

inline std::string FakeCudaPath() { return TestLibrary("libassay_fake_cuda.so"); }

// Null, with a failure of the test, when the library cannot be loaded.
inline FakeCudaControl* ResetFakeCuda() {
  void* const library = dlopen(FakeCudaPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  return reinterpret_cast<FakeCudaResetFunction>(dlsym(library, "assayFakeCudaReset"))();
}

// One kernel, triple(x, y, n), of one thread an element. In `body` %i is the element, below n, %x
// and %y its addresses, %v the element of x; %r0 to %r3, %f0 and %f1, %d0 to %d3 and %q are free.
// `declarations` stand at module scope.
inline std::string TriplePtx(std::string_view body, std::string_view declarations = "") {
  constexpr char kText[] = R"(.version 7.0
.target sm_75
.address_size 64
DECLARATIONS
.visible .entry triple(.param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p, %q;
  .reg .b32 %i, %n, %block, %threads, %thread, %r<4>;
  .reg .f32 %v, %f<2>;
  .reg .b64 %x, %y, %offset, %d<4>;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.u32 %n, [n];
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %i, %block, %threads, %thread;
  setp.ge.s32 %p, %i, %n;
  @%p bra done;
  mul.wide.s32 %offset, %i, 4;
  add.s64 %x, %x, %offset;
  add.s64 %y, %y, %offset;
  ld.global.f32 %v, [%x];
BODY
done:
  ret;
}
)";
  return absl::StrReplaceAll(
      kText, {{"BODY", std::string(body)}, {"DECLARATIONS", std::string(declarations)}});
}

inline constexpr char kTripleBody[] = R"(  mul.f32 %v, %v, 0f40400000;
  st.global.f32 [%y], %v;)";

inline void FillTripleSpec(v1::CandidateSpec* spec) {
  spec->set_problem("triple");
  spec->set_language(v1::PTX);
  v1::Launch& launch = *spec->mutable_plan()->add_launches();
  launch.set_kernel("triple");
  launch.add_grid("ceil_div(n, 32)");
  launch.add_block("32");
  for (const char* argument : {"x", "y", "n"}) launch.add_args(argument);
}

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_CUDA_FIXTURE_H_
