#define TILE 16
extern "C" { __global__ void t(float const *a, float const *b, float *c, size_t size) {
  __shared__ float s[TILE][TILE]; auto r = R"q( } )q";
  c[blockIdx.y * TILE + threadIdx.y] = s[0][threadIdx.x] + gridDim.x * blockIdx.x;
} }
