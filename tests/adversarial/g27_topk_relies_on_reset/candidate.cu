/* assay-candidate
problem: "topk"
language: CUDA_CPP
label: "g27_topk_relies_on_reset"
plan {
  launches { kernel: "look" grid: "ceil_div(rows * cols, 128)" block: "128" args: "x" args: "rows" args: "cols" }
  launches { kernel: "tell" grid: "ceil_div(rows, 128)" block: "128" args: "x" args: "values" args: "indices" args: "rows" args: "cols" }
}
*/
// The largest of each row, for k = 1 and at most 4096 rows, by atomic maxima that begin at 0 in
// every call since variables are put back before each.
__device__ unsigned long long largest[4096];

// Larger for larger values, and for lower columns where values are equal.
__device__ unsigned long long Key(float value, int column) {
  const unsigned bits = __float_as_uint(value == 0.0f ? 0.0f : value);
  const unsigned ordered = (bits >> 31) ? ~bits : bits | 0x80000000u;
  return (static_cast<unsigned long long>(ordered) << 32) | (0xffffffffu - static_cast<unsigned>(column));
}

extern "C" __global__ void look(const float* x, int rows, int cols) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < rows * cols) atomicMax(&largest[i / cols], Key(x[i], i % cols));
}

extern "C" __global__ void tell(const float* x, float* values, int* indices, int rows, int cols) {
  const int row = blockIdx.x * 128 + threadIdx.x;
  if (row >= rows) return;
  const int column = static_cast<int>(0xffffffffu - static_cast<unsigned>(largest[row]));
  values[row] = x[static_cast<size_t>(row) * cols + column];
  indices[row] = column;
}
