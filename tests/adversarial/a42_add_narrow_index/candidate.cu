/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
label: "a42_add_narrow_index"
plan {
  launches { kernel: "add" grid: "ceil_div(n, 256)" block: "256" args: "a" args: "b" args: "c" args: "n" }
}
*/
// The index has 16 bits, where the study's case has 32 and needs gigabytes: the same fault in
// small.
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  const unsigned at = blockIdx.x * 256 + threadIdx.x;
  if (at >= n) return;
  const unsigned short i = (unsigned short)at;
  c[i] = a[i] + b[i];
}
