// cp.async: data are taken at issue and land when they are waited for, so that a missing wait
// shows.
#ifndef ASSAY_EMULATOR_EXECUTE_ASYNC_COPY_H_
#define ASSAY_EMULATOR_EXECUTE_ASYNC_COPY_H_

#include <cstddef>

#include "emulator/execute/block.h"

namespace assay::emulator {

// Lets the oldest committed groups of `warp` land until at most `pending` are left.
void CompleteAsyncGroups(WarpState* warp, size_t pending);
// All of them, and the copies that were not committed.
void CompleteAsyncCopies(WarpState* warp);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_ASYNC_COPY_H_
