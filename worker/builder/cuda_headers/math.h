// <math.h> for NVRTC: its functions are built in, the constants are not, nor what C++ adds for
// arguments of mixed types and for integers.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_MATH_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_MATH_H_

#ifndef INFINITY
#define INFINITY (__int_as_float(0x7f800000))
#endif
#ifndef NAN
#define NAN (__int_as_float(0x7fffffff))
#endif
#ifndef HUGE_VAL
#define HUGE_VAL (__longlong_as_double(0x7ff0000000000000ll))
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif

#ifdef __CUDACC_RTC__  // tests compile every header on the host as well
namespace assay_math {

// 0: no number; else the value says which of the built-in functions take it as it is.
template <typename T>
struct Kind {
  static constexpr int value = 0;
};
enum { kInteger = 1, kFloat = 2, kDouble = 3 };
#define ASSAY_MATH_KIND(type, kind)      \
  template <>                            \
  struct Kind<type> {                    \
    static constexpr int value = (kind); \
  };
ASSAY_MATH_KIND(bool, kInteger)
ASSAY_MATH_KIND(char, kInteger)
ASSAY_MATH_KIND(signed char, kInteger)
ASSAY_MATH_KIND(unsigned char, kInteger)
ASSAY_MATH_KIND(short, kInteger)
ASSAY_MATH_KIND(unsigned short, kInteger)
ASSAY_MATH_KIND(int, kInteger)
ASSAY_MATH_KIND(unsigned, kInteger)
ASSAY_MATH_KIND(long, kInteger)
ASSAY_MATH_KIND(unsigned long, kInteger)
ASSAY_MATH_KIND(long long, kInteger)
ASSAY_MATH_KIND(unsigned long long, kInteger)
ASSAY_MATH_KIND(float, kFloat)
ASSAY_MATH_KIND(double, kDouble)
#undef ASSAY_MATH_KIND

template <bool condition>
struct DoubleIf {};
template <>
struct DoubleIf<true> {
  typedef double type;
};
template <typename A>
using OfInteger = typename DoubleIf<Kind<A>::value == kInteger>::type;
template <typename A, typename B>
using OfMixed =
    typename DoubleIf<Kind<A>::value != 0 && Kind<B>::value != 0 &&
                      (Kind<A>::value != Kind<B>::value || Kind<A>::value == kInteger)>::type;

}  // namespace assay_math

#define ASSAY_MATH_OF_INTEGER(name)                               \
  template <typename A>                                           \
  __device__ __forceinline__ assay_math::OfInteger<A> name(A a) { \
    return name(static_cast<double>(a));                          \
  }
ASSAY_MATH_OF_INTEGER(acos)
ASSAY_MATH_OF_INTEGER(asin)
ASSAY_MATH_OF_INTEGER(atan)
ASSAY_MATH_OF_INTEGER(ceil)
ASSAY_MATH_OF_INTEGER(cos)
ASSAY_MATH_OF_INTEGER(exp)
ASSAY_MATH_OF_INTEGER(exp2)
ASSAY_MATH_OF_INTEGER(fabs)
ASSAY_MATH_OF_INTEGER(floor)
ASSAY_MATH_OF_INTEGER(log)
ASSAY_MATH_OF_INTEGER(log10)
ASSAY_MATH_OF_INTEGER(log2)
ASSAY_MATH_OF_INTEGER(round)
ASSAY_MATH_OF_INTEGER(sin)
ASSAY_MATH_OF_INTEGER(sqrt)
ASSAY_MATH_OF_INTEGER(tan)
ASSAY_MATH_OF_INTEGER(tanh)
#undef ASSAY_MATH_OF_INTEGER

#define ASSAY_MATH_OF_MIXED(name)                                       \
  template <typename A, typename B>                                     \
  __device__ __forceinline__ assay_math::OfMixed<A, B> name(A a, B b) { \
    return name(static_cast<double>(a), static_cast<double>(b));        \
  }
ASSAY_MATH_OF_MIXED(atan2)
ASSAY_MATH_OF_MIXED(fmax)
ASSAY_MATH_OF_MIXED(fmin)
ASSAY_MATH_OF_MIXED(fmod)
ASSAY_MATH_OF_MIXED(hypot)
ASSAY_MATH_OF_MIXED(pow)
#undef ASSAY_MATH_OF_MIXED
#endif  // __CUDACC_RTC__

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_MATH_H_
