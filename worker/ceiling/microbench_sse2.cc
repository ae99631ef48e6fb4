// The variant that every x86-64 processor runs. SSE2 has neither a fused multiply-add nor an 8-bit
// multiply-add: the first is a multiplication and an addition, the second is left to the 16-bit
// one.
#include <immintrin.h>

#include "worker/ceiling/microbench.h"

namespace assay {
namespace {

using VD = __m128d;
using VS = __m128;
using VI = __m128i;
#define SET_PD _mm_set1_pd
#define ADD_PD _mm_add_pd
#define LOAD_PD _mm_load_pd
#define STORE_PD _mm_store_pd
#define STREAM_PD _mm_stream_pd
#define FMA_PD(a, b, c) _mm_add_pd(_mm_mul_pd(a, b), c)
#define SET_PS _mm_set1_ps
#define ADD_PS _mm_add_ps
#define STORE_PS _mm_store_ps
#define FMA_PS(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define SET_I8 _mm_set1_epi8
#define STORE_I(to, v) _mm_store_si128(reinterpret_cast<__m128i*>(to), v)
#define ADD_I16 _mm_add_epi16
#define ADD_I32 _mm_add_epi32
#define MADD_I8 _mm_madd_epi16
#define MADD_I16 _mm_madd_epi16
#include "worker/ceiling/microbench_body.inc"

}  // namespace

const MicrobenchSet& Sse2Microbench() {
  static constexpr MicrobenchSet kSet = {"sse2",  Read,   Write,  WriteNt, Copy,    CopyNt, Triad,
                                         TriadNt, FmaF32, FmaF64, nullptr, MaddI16, nullptr};
  static_cast<void>(MaddI8);
  return kSet;
}

}  // namespace assay
