#include "emulator/execute/call.h"

#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/execute/block.h"
#include "emulator/execute/format.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {
namespace {

constexpr size_t kStringBytesMax = 4096;

// Argument number `index` of a lane.
uint64_t Argument(Warp* warp, const Op& op, uint32_t index, int lane) {
  const uint32_t* const places = &warp->block->program().lists[op.list];
  const uint32_t bytes = places[2 * index + 1];
  uint64_t value = 0;
  std::memcpy(&value, warp->registers + places[2 * index] + static_cast<size_t>(lane) * bytes,
              std::min<uint32_t>(8, bytes));
  return value;
}

// A string of device memory. Nothing of it is reported: what cannot be read ends it.
std::string ReadString(Warp* warp, uint64_t address) {
  std::string text;
  while (text.size() < kStringBytesMax) {
    const auto byte = warp->block->launch().memory->Range(address + text.size(), 1);
    if (!byte.ok() || **byte == std::byte{0}) break;
    text.push_back(static_cast<char>(**byte));
  }
  return text;
}

void Printf(Warp* warp, const Op& op, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t arguments = Argument(warp, op, 1, lane);
    const std::string text = FormatPrintf(
        ReadString(warp, Argument(warp, op, 0, lane)),
        [&](uint64_t offset, void* out, size_t bytes) {
          return LoadLane(warp, op, lane, Space::kGeneric, arguments + offset,
                          static_cast<uint32_t>(bytes), out);
        },
        [&](uint64_t address) -> absl::StatusOr<std::string> { return ReadString(warp, address); });
    if (warp->event == WarpEvent::kStopped) return;
    WriteOutput(warp, op, lane, text);
    if (warp->event == WarpEvent::kStopped) return;
    const uint32_t* const places = &warp->block->program().lists[op.list];
    if (op.list_size > 2 * op.extra && places[2 * op.extra + 1] == 4) {
      const auto count = static_cast<int32_t>(text.size());
      std::memcpy(warp->registers + places[2 * op.extra] + static_cast<size_t>(lane) * 4, &count,
                  sizeof(count));
    }
  }
}

// __assertfail(message, file, line, function, bytes of a character)
void AssertFail(Warp* warp, const Op& op, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  ReportFault(warp, op, lane, FaultKind::kAssert,
              absl::StrCat("assertion failed: ", ReadString(warp, Argument(warp, op, 0, lane)),
                           " at ", ReadString(warp, Argument(warp, op, 1, lane)), ":",
                           static_cast<uint32_t>(Argument(warp, op, 2, lane)), " in ",
                           ReadString(warp, Argument(warp, op, 3, lane))));
}

struct Builtin {
  std::string_view name;
  Handler handler;
  size_t arguments;
};
constexpr Builtin kBuiltins[] = {{"vprintf", Printf, 2}, {"__assertfail", AssertFail, 5}};

const Builtin* Find(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

}  // namespace

void CopyParamSpace(Warp* warp, const Op& op, uint32_t mask) {
  EachLane(mask, [&](int lane) {
    std::memcpy(warp->registers + op.dst + static_cast<size_t>(lane) * op.data,
                warp->registers + op.a + static_cast<size_t>(lane) * op.data, op.data);
  });
}

void CallFunction(Warp* warp, const Op& op, uint32_t mask) {
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t after = warp->pc;
  EachLane(mask, [&](int lane) { to[lane] = after; });
  if (mask != warp->active) {
    StateOf(warp)->groups.push_back({after, warp->active & ~mask, 0});
    warp->active = mask;
    warp->event = WarpEvent::kRegroup;
  }
  warp->pc = static_cast<uint32_t>(op.data);
}

Handler FindBuiltin(std::string_view name) {
  const Builtin* const builtin = Find(name);
  return builtin == nullptr ? nullptr : builtin->handler;
}

size_t BuiltinArguments(std::string_view name) {
  const Builtin* const builtin = Find(name);
  return builtin == nullptr ? 0 : builtin->arguments;
}

}  // namespace assay::emulator
