// <cub/cub.cuh> for NVRTC: what a kernel can use. The toolkit's own brings the host side as well,
// which NVRTC refuses.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_CUB_CUB_CUH_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_CUB_CUB_CUH_

#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/thread/thread_load.cuh>
#include <cub/thread/thread_reduce.cuh>
#include <cub/thread/thread_scan.cuh>
#include <cub/thread/thread_search.cuh>
#include <cub/thread/thread_store.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_CUB_CUB_CUH_
