// Messages on pipes: a little-endian uint32 with the length, then the bytes.
#ifndef ASSAY_WORKER_RUNNER_FRAMING_H_
#define ASSAY_WORKER_RUNNER_FRAMING_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// The frame as one string.
std::string Frame(std::string_view message);

// Reads one frame. Blocks. OUT_OF_RANGE when the pipe ended before its first byte; DATA_LOSS when
// it ended inside a frame; RESOURCE_EXHAUSTED when the frame claims more than `bytes_max`.
absl::StatusOr<std::string> ReadFrame(int fd, size_t bytes_max);

// Takes the length out of the first four bytes of a frame; `header` has at least four.
size_t FrameLength(std::string_view header);

inline constexpr size_t kFrameHeaderBytes = 4;

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_FRAMING_H_
