#include "kernels/streaming_stores.h"

#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace assay {
namespace {

TEST(StreamCopyTest, CopiesEveryByteAndNoOther) {
  constexpr size_t kRoom = 512;
  constexpr std::byte kOther{0xee};
  std::array<std::byte, kRoom> from;
  for (size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(i % 223);
  for (const size_t bytes : {0, 1, 4, 15, 16, 17, 63, 64, 65, 100, 128, 129, 255, 256, 400}) {
    for (const size_t to_offset : {0, 1, 4, 8, 15, 16, 17, 60}) {
      for (const size_t from_offset : {0, 3, 16}) {
        SCOPED_TRACE(absl::StrCat(bytes, " bytes from ", from_offset, " to ", to_offset));
        alignas(64) std::array<std::byte, kRoom> to;
        to.fill(kOther);
        StreamCopy(std::span(from).subspan(from_offset, bytes), to.data() + to_offset);
        EndStreaming();
        for (size_t i = 0; i < kRoom; ++i) {
          const bool inside = i >= to_offset && i < to_offset + bytes;
          ASSERT_EQ(to[i], inside ? from[from_offset + i - to_offset] : kOther) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
