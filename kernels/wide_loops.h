// Loops for the wide registers that the machine has. A body marked ASSAY_WIDE_BODY is written once
// as a plain loop; DispatchWide runs the copy compiled for AVX2 where there is AVX2, else the
// ordinary one. Neither contracts to fused multiply-add, so both give the same bits. (Not
// target_clones: its resolvers run before sanitizers are ready.)
#ifndef ASSAY_KERNELS_WIDE_LOOPS_H_
#define ASSAY_KERNELS_WIDE_LOOPS_H_

#define ASSAY_WIDE_BODY [[gnu::always_inline]] inline

namespace assay {

#if defined(__x86_64__)
template <auto kBody, typename... Args>
[[gnu::target("avx2")]] void RunWide(Args... args) {
  kBody(args...);
}

template <auto kBody, typename... Args>
void DispatchWide(Args... args) {
  if (__builtin_cpu_supports("avx2")) return RunWide<kBody>(args...);
  kBody(args...);
}
#else
template <auto kBody, typename... Args>
void DispatchWide(Args... args) {
  kBody(args...);
}
#endif

}  // namespace assay

#endif  // ASSAY_KERNELS_WIDE_LOOPS_H_
