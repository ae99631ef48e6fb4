// The variant for AVX-512 (F and BW).
#include <immintrin.h>

#include "worker/ceiling/microbench.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw")

namespace assay {
namespace {

using VD = __m512d;
using VS = __m512;
using VI = __m512i;
#define SET_PD _mm512_set1_pd
#define ADD_PD _mm512_add_pd
#define LOAD_PD _mm512_load_pd
#define STORE_PD _mm512_store_pd
#define STREAM_PD _mm512_stream_pd
#define FMA_PD _mm512_fmadd_pd
#define SET_PS _mm512_set1_ps
#define ADD_PS _mm512_add_ps
#define STORE_PS _mm512_store_ps
#define FMA_PS _mm512_fmadd_ps
#define SET_I8 _mm512_set1_epi8
#define STORE_I(to, v) _mm512_store_si512(to, v)
#define ADD_I16 _mm512_add_epi16
#define ADD_I32 _mm512_add_epi32
#define MADD_I8 _mm512_maddubs_epi16
#define MADD_I16 _mm512_madd_epi16
#include "worker/ceiling/microbench_body.inc"

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vnni")
#define ASSAY_STEP_DOT(k) x##k = _mm512_dpbusd_epi32(x##k, a, b);
ASSAY_INTEGER_CHAINS(DotI8, sizeof(VI), ASSAY_STEP_DOT)
#pragma GCC pop_options

}  // namespace

const MicrobenchSet& Avx512Microbench() {
  static constexpr MicrobenchSet kPlain = {"avx512", Read,    Write,   WriteNt, Copy,
                                           CopyNt,   Triad,   TriadNt, FmaF32,  FmaF64,
                                           MaddI8,   MaddI16, nullptr};
  static constexpr MicrobenchSet kWithDot = {"avx512", Read,    Write,   WriteNt, Copy,
                                             CopyNt,   Triad,   TriadNt, FmaF32,  FmaF64,
                                             MaddI8,   MaddI16, DotI8};
  return __builtin_cpu_supports("avx512vnni") ? kWithDot : kPlain;
}

}  // namespace assay
