// ldmatrix, stmatrix and movmatrix on 8 by 8 matrices of 16 bits; wmma, whose parts are elsewhere.
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/matrix_access.h"
#include "emulator/ops/matrix_wmma.h"
#include "emulator/ops/memory_decode.h"
#include "emulator/ops/mma.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

// Op::extra beyond kNarrowAddress and the space. Op::list is the registers, one a matrix.
constexpr uint32_t kTransposed = 1u << 12;
constexpr uint32_t kRowBytes = 16;
constexpr int kMatrixRows = 8;

// Lanes 8 i to 8 i + 7 name the rows of matrix i.
uint32_t RowLanes(const Op& op) {
  return op.list_size * kMatrixRows >= kLanes ? kAllLanes : (1u << op.list_size * kMatrixRows) - 1;
}

// The element of `lane` that is the low (0) or high (1) half of its register, in a matrix whose
// rows follow one another.
int ElementIndex(const Op& op, int lane, int half) {
  const int row = lane / 4;
  const int column = lane % 4 * 2 + half;
  return (op.extra & kTransposed) != 0 ? column * kMatrixRows + row : row * kMatrixRows + column;
}

// Generic addresses must be those of shared memory.
bool CheckShared(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses) {
  if (MatrixSpace(op) != Space::kGeneric) return true;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint64_t address = addresses[lane];
    if (SplitGeneric(&address) == Space::kShared) continue;
    ReportMemoryFault(warp, op, lane, FaultKind::kOutOfBounds, Space::kGeneric, addresses[lane],
                      kRowBytes,
                      absl::StrCat("matrix row at generic address 0x", absl::Hex(addresses[lane]),
                                   ", which is not in shared memory"));
    return false;
  }
  return true;
}

void LoadMatrix(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  alignas(64) uint64_t addresses[kLanes];
  ComputeAddresses(warp, op, addresses);
  const uint32_t rows = mask & RowLanes(op);
  alignas(64) uint16_t values[kLanes * kMatrixRows] = {};
  if (rows != 0 && (!CheckShared(warp, op, rows, addresses) ||
                    !LoadMatrixLanes(warp, op, rows, addresses, kRowBytes,
                                     reinterpret_cast<std::byte*>(values)))) {
    return;
  }
  const uint32_t* const registers = OpList(warp, op);
  for (int i = 0; i < op.list_size; ++i) {
    const uint16_t* const matrix = values + i * kMatrixRows * kMatrixRows;
    uint32_t* const lanes = Lanes<uint32_t>(warp, registers[i]);
    EachLane(mask, [&](int lane) {
      lanes[lane] = uint32_t{matrix[ElementIndex(op, lane, 0)]} |
                    uint32_t{matrix[ElementIndex(op, lane, 1)]} << 16;
    });
  }
}

void StoreMatrix(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  alignas(64) uint64_t addresses[kLanes];
  ComputeAddresses(warp, op, addresses);
  alignas(64) uint16_t values[kLanes * kMatrixRows];
  const uint32_t* const registers = OpList(warp, op);
  for (int i = 0; i < op.list_size; ++i) {
    uint16_t* const matrix = values + i * kMatrixRows * kMatrixRows;
    const uint32_t* const lanes = Lanes<uint32_t>(warp, registers[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      matrix[ElementIndex(op, lane, 0)] = static_cast<uint16_t>(lanes[lane]);
      matrix[ElementIndex(op, lane, 1)] = static_cast<uint16_t>(lanes[lane] >> 16);
    }
  }
  const uint32_t rows = mask & RowLanes(op);
  if (rows == 0 || !CheckShared(warp, op, rows, addresses)) return;
  StoreMatrixLanes(warp, op, rows, addresses, kRowBytes,
                   reinterpret_cast<const std::byte*>(values));
}

void MoveMatrix(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  uint16_t matrix[kMatrixRows * kMatrixRows];
  std::memcpy(matrix, Lanes<uint32_t>(warp, op.a), sizeof(matrix));
  uint32_t* const lanes = Lanes<uint32_t>(warp, op.dst);
  EachLane(mask, [&](int lane) {
    lanes[lane] = uint32_t{matrix[ElementIndex(op, lane, 0)]} |
                  uint32_t{matrix[ElementIndex(op, lane, 1)]} << 16;
  });
}

// .m8n8, .x1 to .x4 and .trans in any order, as ptxas has it, then space and .b16. `count` is 0.
absl::Status DecodeShape(const Instruction& instruction, size_t* count, Op* op) {
  Modifiers modifiers(instruction);
  ASSAY_RETURN_IF_ERROR(TakeSyncAligned(&modifiers));
  bool has_shape = false;
  for (bool more = true; more;) {
    more = false;
    if (!has_shape && modifiers.Take("m8n8")) more = has_shape = true;
    for (const auto& [name, number] :
         {std::pair<const char*, size_t>{"x1", 1}, {"x2", 2}, {"x4", 4}}) {
      if (*count != 0 || !modifiers.Take(name)) continue;
      *count = number;
      more = true;
    }
    if ((op->extra & kTransposed) == 0 && modifiers.Take("trans")) {
      op->extra |= kTransposed;
      more = true;
    }
  }
  if (!has_shape) return UnknownModifier("modifier .m8n8", modifiers);
  if (*count == 0) return UnknownModifier("number of matrices (.x1, .x2, .x4)", modifiers);
  Space space = Space::kGeneric;
  if (TakeSpace(&modifiers, &space) && space != Space::kShared) {
    return absl::InvalidArgumentError("matrices are loaded from and stored to shared memory only");
  }
  op->extra |= static_cast<uint32_t>(space) << kMatrixSpaceShift;
  ASSAY_RETURN_IF_ERROR(TakeModifier("b16", &modifiers));
  return modifiers.Finish();
}

absl::Status DecodeTransfer(const Instruction& instruction, bool load, Decoder* decoder, Op* op) {
  size_t count = 0;
  ASSAY_RETURN_IF_ERROR(DecodeShape(instruction, &count, op));
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  const Operand& registers = instruction.operands[load ? 0 : 1];
  std::vector<uint32_t> list;
  ASSAY_RETURN_IF_ERROR(load ? DecodeDestinations(registers, Type::kB32, count, decoder, &list)
                             : DecodeSources(registers, Type::kB32, count, decoder, &list));
  ASSAY_RETURN_IF_ERROR(DecodeMatrixAddress(instruction.operands[load ? 1 : 0], decoder, op));
  op->list = decoder->AddList(list);
  op->list_size = static_cast<uint16_t>(count);
  op->handler = load ? &LoadMatrix : &StoreMatrix;
  decoder->info()->op_class = OpClass::kMemory;
  return absl::OkStatus();
}

absl::Status DecodeLoadMatrix(const Instruction& instruction, Decoder* decoder, Op* op) {
  return DecodeTransfer(instruction, true, decoder, op);
}

absl::Status DecodeStoreMatrix(const Instruction& instruction, Decoder* decoder, Op* op) {
  return DecodeTransfer(instruction, false, decoder, op);
}

absl::Status DecodeMoveMatrix(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  ASSAY_RETURN_IF_ERROR(TakeSyncAligned(&modifiers));
  for (const std::string_view name : {"m8n8", "trans", "b16"}) {
    ASSAY_RETURN_IF_ERROR(TakeModifier(name, &modifiers));
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], Type::kB32));
  op->extra = kTransposed;
  op->handler = &MoveMatrix;
  return absl::OkStatus();
}

absl::Status DecodeWmma(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view action =
      instruction.modifiers.empty() ? std::string_view() : instruction.modifiers[0];
  if (action == "mma") return DecodeWmmaMma(instruction, decoder, op);
  return DecodeWmmaTransfer(instruction, decoder, op);
}

}  // namespace

void AddMatrixOps(OpTable* table) {
  table->Add("ldmatrix", &DecodeLoadMatrix);
  table->Add("stmatrix", &DecodeStoreMatrix);
  table->Add("movmatrix", &DecodeMoveMatrix);
  table->Add("wmma", &DecodeWmma);
}

}  // namespace assay::emulator
