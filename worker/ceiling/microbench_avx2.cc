// The variant for AVX2 with FMA.
#include <immintrin.h>

#include "worker/ceiling/microbench.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace assay {
namespace {

using VD = __m256d;
using VS = __m256;
using VI = __m256i;
#define SET_PD _mm256_set1_pd
#define ADD_PD _mm256_add_pd
#define LOAD_PD _mm256_load_pd
#define STORE_PD _mm256_store_pd
#define STREAM_PD _mm256_stream_pd
#define FMA_PD _mm256_fmadd_pd
#define SET_PS _mm256_set1_ps
#define ADD_PS _mm256_add_ps
#define STORE_PS _mm256_store_ps
#define FMA_PS _mm256_fmadd_ps
#define SET_I8 _mm256_set1_epi8
#define STORE_I(to, v) _mm256_store_si256(reinterpret_cast<__m256i*>(to), v)
#define ADD_I16 _mm256_add_epi16
#define ADD_I32 _mm256_add_epi32
#define MADD_I8 _mm256_maddubs_epi16
#define MADD_I16 _mm256_madd_epi16
#include "worker/ceiling/microbench_body.inc"

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avxvnni")
#define ASSAY_STEP_DOT(k) x##k = _mm256_dpbusd_avx_epi32(x##k, a, b);
ASSAY_INTEGER_CHAINS(DotI8, sizeof(VI), ASSAY_STEP_DOT)
#pragma GCC pop_options

}  // namespace

const MicrobenchSet& Avx2Microbench() {
  static constexpr MicrobenchSet kPlain = {"avx2",  Read,   Write,  WriteNt, Copy,    CopyNt, Triad,
                                           TriadNt, FmaF32, FmaF64, MaddI8,  MaddI16, nullptr};
  static constexpr MicrobenchSet kWithDot = {"avx2", Read,    Write,   WriteNt, Copy,
                                             CopyNt, Triad,   TriadNt, FmaF32,  FmaF64,
                                             MaddI8, MaddI16, DotI8};
  // Leaf 7.1, EAX bit 4; the compiler's own check does not know the name in all versions.
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 1;
  unsigned edx = 0;
  asm volatile("cpuid" : "=a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx) : "a"(0));
  if (eax < 7) return kPlain;
  ecx = 1;
  asm volatile("cpuid" : "=a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx) : "a"(7));
  return (eax & (1u << 4)) != 0 ? kWithDot : kPlain;
}

}  // namespace assay
