// The name of a device as classes and folders take it. Pure.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_SLUG_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_SLUG_H_

#include <string>
#include <string_view>

namespace assay {

// "nvidia-h200" of "NVIDIA H200": of [a-z0-9-], never empty.
std::string DeviceSlug(std::string_view device_name);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_SLUG_H_
