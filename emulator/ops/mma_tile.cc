#include "emulator/ops/mma_tile.h"

#include <bit>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {
namespace {

struct ElementEntry {
  std::string_view name;
  Element element;
  int bits;
};
constexpr ElementEntry kElements[] = {
    {"f16", Element::kF16, 16},  {"bf16", Element::kBF16, 16}, {"tf32", Element::kTF32, 32},
    {"e4m3", Element::kE4M3, 8}, {"e5m2", Element::kE5M2, 8},  {"f64", Element::kF64, 64},
    {"s8", Element::kS8, 8},     {"u8", Element::kU8, 8},      {"s4", Element::kS4, 4},
    {"u4", Element::kU4, 4},     {"b1", Element::kB1, 1},      {"f32", Element::kF32, 32},
    {"s32", Element::kS32, 32},
};

// Takes `letter` and a number from the front of `text`.
bool TakeExtent(char letter, std::string_view* text, int* extent) {
  if (text->empty() || text->front() != letter) return false;
  const char* const end = text->data() + text->size();
  const auto [next, error] = std::from_chars(text->data() + 1, end, *extent);
  if (error != std::errc() || *extent <= 0 || *extent > 256) return false;
  text->remove_prefix(static_cast<size_t>(next - text->data()));
  return true;
}

}  // namespace

Element ParseElement(std::string_view name) {
  for (const ElementEntry& entry : kElements) {
    if (entry.name == name) return entry.element;
  }
  return Element::kNone;
}

std::string_view ElementName(Element element) {
  for (const ElementEntry& entry : kElements) {
    if (entry.element == element) return entry.name;
  }
  return "none";
}

int ElementBits(Element element) {
  for (const ElementEntry& entry : kElements) {
    if (entry.element == element) return entry.bits;
  }
  return 0;
}

Tile ParseTile(std::string_view name) {
  int m = 0;
  int n = 0;
  int k = 0;
  if (!TakeExtent('m', &name, &m) || !TakeExtent('n', &name, &n) || !TakeExtent('k', &name, &k) ||
      !name.empty() || m > 32 || n > 32) {
    return {};
  }
  return {static_cast<uint8_t>(m), static_cast<uint8_t>(n), static_cast<uint16_t>(k)};
}

Multiplicand MultiplicandOf(const Tile& tile, bool second, int bits) {
  const bool is_rows = second == tile.transposed();
  const int rows = is_rows ? tile.rows() : tile.columns();
  return {rows, bits == 64 ? tile.k : tile.k * bits / 32, is_rows && rows >= 16};
}

void GatherHalfAccumulators(const Warp* warp, const uint32_t* registers, const Accumulators& from,
                            uint32_t* values) {
  for (int i = 0; i < from.per_lane(); i += 2) {
    const uint32_t* const lanes = Lanes<uint32_t>(warp, registers[i / 2]);
    const Accumulators::Place first = from.PlaceOf(i, 0);
    for (int lane = 0; lane < kLanes; ++lane) {
      uint32_t* const pair =
          values + (first.row + lane / 4) * from.columns + first.column + 2 * (lane % 4);
      pair[0] = lanes[lane] & 0xffffu;
      pair[1] = lanes[lane] >> 16;
    }
  }
}

void ScatterHalfAccumulators(Warp* warp, const uint32_t* registers, const Accumulators& to,
                             uint32_t mask, const uint32_t* values) {
  for (int i = 0; i < to.per_lane(); i += 2) {
    uint32_t* const lanes = Lanes<uint32_t>(warp, registers[i / 2]);
    const Accumulators::Place first = to.PlaceOf(i, 0);
    EachLane(mask, [=](int lane) {
      const uint32_t* const pair =
          values + (first.row + lane / 4) * to.columns + first.column + 2 * (lane % 4);
      lanes[lane] = (pair[0] & 0xffffu) | pair[1] << 16;
    });
  }
}

bool MeetAligned(Warp* warp, const Op& op, uint32_t mask) {
  if (mask == kAllLanes) return true;
  const uint32_t passing = warp->active & ~mask;
  if (passing != 0) {
    if (CountKnownFault(warp, op, FaultKind::kAbsentLane)) return true;
    ReportFault(warp, op, std::countr_zero(passing), FaultKind::kAbsentLane,
                absl::StrCat("every lane of the warp must execute this; lanes 0x",
                             absl::Hex(passing), " pass over it by its guard predicate"));
    return warp->event != WarpEvent::kStopped;
  }
  if (!Converge(warp, op, mask, kAllLanes)) return false;
  const uint32_t gone = ~warp->live;
  if (gone != 0 && warp->event != WarpEvent::kStopped &&
      !CountKnownFault(warp, op, FaultKind::kAbsentLane)) {
    ReportFault(warp, op, std::countr_zero(mask), FaultKind::kAbsentLane,
                absl::StrCat("every lane of the warp must execute this; lanes 0x", absl::Hex(gone),
                             " have exited or are beyond the end of the block"));
  }
  return warp->event != WarpEvent::kStopped;
}

}  // namespace assay::emulator
