// A library that computes, with memory and tables of its own. Only for tests; never loaded.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

extern "C" {

extern const float assay_table[16] = {1.0f, 0.5f, 0.25f, 0.125f};

double assay_honest(const double* from, int n) {
  std::vector<double> work(from, from + n);
  std::sort(work.begin(), work.end());
  double* copy = new double[work.size()];
  std::memcpy(copy, work.data(), work.size() * sizeof(double));
  const double sum = std::exp(copy[0]) + std::lgamma(copy[1]) + std::sin(copy[2]);
  delete[] copy;
  std::printf("%g\n", sum);
  return sum;
}

}  // extern "C"
