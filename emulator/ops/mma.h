// What mma.cc and the matrix files share about the instructions themselves.
#ifndef ASSAY_EMULATOR_OPS_MMA_H_
#define ASSAY_EMULATOR_OPS_MMA_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "emulator/ops/mma_tile.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

// Takes `name` from the modifiers, or says that it must stand there.
absl::Status TakeModifier(std::string_view name, Modifiers* modifiers);
// .sync.aligned, which every instruction of these files has.
absl::Status TakeSyncAligned(Modifiers* modifiers);
// UNIMPLEMENTED: the modifiers go on with something that is no `what`.
absl::Status UnknownModifier(std::string_view what, const Modifiers& modifiers);

// Registers of a braced operand, or of a single one, appended to `registers`. INVALID_ARGUMENT
// unless there are `count`.
absl::Status DecodeSources(const Operand& operand, Type type, size_t count, Decoder* decoder,
                           std::vector<uint32_t>* registers);
absl::Status DecodeDestinations(const Operand& operand, Type type, size_t count, Decoder* decoder,
                                std::vector<uint32_t>* registers);

// The type of a register that holds elements of a multiplicand, or accumulators.
Type FragmentType(Element element);

// Whether there is a wmma of that shape on such elements.
bool IsWmmaTile(const Tile& tile, Element element);
// Registers of a wmma multiplicand in PTX: of f16 there are always 8, each base register repeated.
int WmmaRegisters(const Multiplicand& multiplicand, Element element);

// wmma.mma; wmma.load and wmma.store are decoded where the mnemonic is.
absl::Status DecodeWmmaMma(const Instruction& instruction, Decoder* decoder, Op* op);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MMA_H_
