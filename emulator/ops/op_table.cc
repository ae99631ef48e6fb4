#include "emulator/ops/mbarrier.h"
#include "emulator/ops/ops.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {
namespace {

OpTable MakeTable() {
  OpTable table;
  AddArithmeticOps(&table);
  AddIntegerOps(&table);
  AddVideoOps(&table);
  AddBitOps(&table);
  AddBitFieldOps(&table);
  AddCompareOps(&table);
  AddSelectOps(&table);
  AddMoveOps(&table);
  AddFloatOps(&table);
  AddApproximateOps(&table);
  AddConvertOps(&table);
  AddMemoryOps(&table);
  AddAtomicOps(&table);
  AddAsyncCopyOps(&table);
  AddControlOps(&table);
  AddBarrierOps(&table);
  AddMbarrierOps(&table);
  AddWarpOps(&table);
  AddMmaOps(&table);
  AddMatrixOps(&table);
  return table;
}

}  // namespace

const OpTable& AllOps() {
  static const OpTable kTable = MakeTable();
  return kTable;
}

}  // namespace assay::emulator
