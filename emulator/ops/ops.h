// Every operation of the emulator: one function for each file of this folder, named again where the
// table is made. A mnemonic belongs to one of them.
#ifndef ASSAY_EMULATOR_OPS_OPS_H_
#define ASSAY_EMULATOR_OPS_OPS_H_

#include "emulator/program/decoder.h"

namespace assay::emulator {

// add sub mul mad fma div neg abs min max rcp sqrt: integers, floating point, or approximate.
void AddArithmeticOps(OpTable* table);
void AddIntegerOps(OpTable* table);      // rem mul24 mad24 sad addc subc madc
void AddVideoOps(OpTable* table);        // dp4a dp2a vadd vadd2 vadd4 and their kin
void AddBitOps(OpTable* table);          // and or xor not cnot shl shr shf lop3 prmt
void AddBitFieldOps(OpTable* table);     // bfe bfi bfind brev clz popc szext bmsk fns
void AddCompareOps(OpTable* table);      // setp set
void AddSelectOps(OpTable* table);       // selp slct
void AddMoveOps(OpTable* table);         // mov cvta isspacep
void AddFloatOps(OpTable* table);        // copysign testp
void AddApproximateOps(OpTable* table);  // ex2 lg2 rsqrt sin cos tanh
void AddConvertOps(OpTable* table);      // cvt

void AddMemoryOps(OpTable* table);
void AddAtomicOps(OpTable* table);
void AddAsyncCopyOps(OpTable* table);
void AddControlOps(OpTable* table);
void AddBarrierOps(OpTable* table);
void AddWarpOps(OpTable* table);
void AddMmaOps(OpTable* table);
void AddMatrixOps(OpTable* table);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_OPS_H_
