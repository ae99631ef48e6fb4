#include "worker/backend/cuda/helper_kernels.h"

namespace assay {

const char kHelperKernels[] = R"(.version 7.0
.target sm_75
.address_size 64

.extern .shared .align 16 .b8 assay_shared[];

.visible .entry assay_empty() {
  ret;
}

.visible .entry assay_gate(.param .u64 words, .param .u32 looks) {
  .reg .pred %open, %more;
  .reg .b32 %word, %left, %one;
  .reg .b64 %words;
  ld.param.u64 %words, [words];
  ld.param.u32 %left, [looks];
  cvta.to.global.u64 %words, %words;
look:
  ld.volatile.global.u32 %word, [%words];
  setp.ne.u32 %open, %word, 0;
  @%open bra done;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %more, %left, 0;
  @%more bra look;
  mov.u32 %one, 1;
  st.volatile.global.u32 [%words+4], %one;
done:
  ret;
}

.visible .entry assay_checksum(.param .u64 data, .param .u64 count, .param .u64 sum) {
  .reg .pred %end;
  .reg .b32 %block, %threads, %thread, %blocks, %hash, %mixed;
  .reg .b64 %data, %count, %sum, %i, %stride, %at, %part, %wide;
  ld.param.u64 %data, [data];
  ld.param.u64 %count, [count];
  ld.param.u64 %sum, [sum];
  cvta.to.global.u64 %data, %data;
  cvta.to.global.u64 %sum, %sum;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %threads;
  cvt.u64.u32 %wide, %thread;
  add.u64 %i, %i, %wide;
  mul.wide.u32 %stride, %blocks, %threads;
  mov.u64 %part, 0;
next:
  setp.ge.u64 %end, %i, %count;
  @%end bra done;
  shl.b64 %at, %i, 2;
  add.u64 %at, %data, %at;
  ld.global.u32 %hash, [%at];
  cvt.u32.u64 %mixed, %i;
  mul.lo.u32 %mixed, %mixed, 0x9e3779b1;
  xor.b32 %hash, %hash, %mixed;
  mul.lo.u32 %hash, %hash, 0x85ebca6b;
  shr.u32 %mixed, %hash, 15;
  xor.b32 %hash, %hash, %mixed;
  mul.lo.u32 %hash, %hash, 0xc2b2ae35;
  shr.u32 %mixed, %hash, 13;
  xor.b32 %hash, %hash, %mixed;
  cvt.u64.u32 %wide, %hash;
  add.u64 %part, %part, %wide;
  add.u64 %i, %i, %stride;
  bra next;
done:
  red.global.add.u64 [%sum], %part;
  ret;
}

.visible .entry assay_fill_shared(.param .u32 count, .param .u32 value) {
  .reg .pred %end;
  .reg .b32 %count, %value, %i, %stride, %at, %base;
  ld.param.u32 %count, [count];
  ld.param.u32 %value, [value];
  mov.u32 %i, %tid.x;
  mov.u32 %stride, %ntid.x;
  mov.u32 %base, assay_shared;
next:
  setp.ge.u32 %end, %i, %count;
  @%end bra done;
  shl.b32 %at, %i, 2;
  add.u32 %at, %base, %at;
  st.volatile.shared.u32 [%at], %value;
  add.u32 %i, %i, %stride;
  bra next;
done:
  ret;
}
)";

}  // namespace assay
