// Neighbouring elements of a tensor, for passes over it that several threads share.
#ifndef ASSAY_KERNELS_ELEMENT_RANGE_H_
#define ASSAY_KERNELS_ELEMENT_RANGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/problem.h"

namespace assay {

// In row-major order.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin == end; }
};

inline ElementRange AllElements(const TensorShape& tensor) { return {0, tensor.elements}; }

// The first dimension that is longer than one; the number of dimensions where none is.
inline size_t FirstLongDimension(const TensorShape& tensor) {
  const auto longer = [](int64_t size) { return size > 1; };
  return static_cast<size_t>(std::find_if(tensor.dims.begin(), tensor.dims.end(), longer) -
                             tensor.dims.begin());
}

// The `index`-th of `count` parts of about equal size, cut along the first long dimension. With
// `rows` no row of the last dimension is cut. Parts may be empty.
inline ElementRange ShareOfElements(const TensorShape& tensor, bool rows, int index, int count) {
  const size_t d = FirstLongDimension(tensor);
  if (d == tensor.dims.size() || (rows && d + 1 == tensor.dims.size())) {
    return {0, index == 0 ? tensor.elements : 0};
  }
  const int64_t inner = tensor.elements / tensor.dims[d];
  return {tensor.dims[d] * index / count * inner, tensor.dims[d] * (index + 1) / count * inner};
}

}  // namespace assay

#endif  // ASSAY_KERNELS_ELEMENT_RANGE_H_
