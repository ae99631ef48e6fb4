/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a45_relu_template_bomb"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// 2^30 templates.
template <int Depth, unsigned Path>
struct Bomb {
  static constexpr unsigned value = Bomb<Depth - 1, 2 * Path>::value + Bomb<Depth - 1, 2 * Path + 1>::value;
};
template <unsigned Path>
struct Bomb<0, Path> {
  static constexpr unsigned value = Path;
};

extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = Bomb<30, 0>::value == 0 || x[i] < 0.0f ? 0.0f : x[i];
}
