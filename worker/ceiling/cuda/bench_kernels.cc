#include "worker/ceiling/cuda/bench_kernels.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr int kWarpThreads = 32;
// More independent chains than the latency of any unit so far needs, with a few warps a scheduler.
constexpr int kFmaChains = 8;
constexpr int kFmaUnroll = 32;
constexpr int kMmaUnroll = 4;

std::string Header(std::string_view version, std::string_view target) {
  return absl::StrCat(".version ", Av(version), "\n.target ", Av(target),
                      "\n.address_size 64\n\n.visible .entry ", kBenchEntry,
                      "(\n  .param .u64 a, .param .u64 b, .param .u64 c,\n"
                      "  .param .u32 rounds, .param .u32 passes)\n{\n");
}

// "{%x0, %x1}" of `count` registers of `bank` from `first` on; without braces for one.
std::string Registers(std::string_view bank, int first, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat(Av(bank), first + i));
  return count == 1 ? names[0] : absl::StrCat("{", absl::StrJoin(names, ", "), "}");
}

// The same, with braces for one, as mma takes it.
std::string Braced(std::string_view bank, int count) {
  return count == 1 ? absl::StrCat("{", Av(bank), "0}") : Registers(bank, 0, count);
}

// ---- streams

struct StreamForm {
  const char* name;
  int arrays;
  bool writes;
};

StreamForm FormOf(StreamKind kind) {
  switch (kind) {
    case StreamKind::kRead:
      return {"read", 1, false};
    case StreamKind::kWrite:
      return {"write", 1, true};
    case StreamKind::kCopy:
      return {"copy", 2, true};
    case StreamKind::kTriad:
      return {"triad", 3, true};
  }
  return {};
}

// One round: all loads, then what is done with them. The registers of unroll step u are
// %f(u * words) and so on, of array c %g.
std::string StreamRound(StreamKind kind, int words, int unroll) {
  const std::string vector = words == 1 ? "" : absl::StrCat(".v", words);
  std::string text;
  const auto load = [&](const char* bank, const char* address, int u) {
    absl::StrAppend(&text, "  ld.global.cg", vector, ".f32 ", Registers(bank, u * words, words),
                    ", [", address, "];\n  add.s64 ", address, ", ", address, ", %step;\n");
  };
  for (int u = 0; u < unroll; ++u) {
    if (kind == StreamKind::kRead) load("%f", "%a", u);
    if (kind == StreamKind::kCopy || kind == StreamKind::kTriad) load("%f", "%b", u);
    if (kind == StreamKind::kTriad) load("%g", "%c", u);
  }
  for (int u = 0; u < unroll; ++u) {
    for (int i = u * words; i < (u + 1) * words; ++i) {
      if (kind == StreamKind::kRead) {
        absl::StrAppend(&text, "  mov.b32 %bits, %f", i, ";\n  xor.b32 %sum, %sum, %bits;\n");
      }
      if (kind == StreamKind::kTriad) {
        absl::StrAppend(&text, "  fma.rn.f32 %f", i, ", %scale, %g", i, ", %f", i, ";\n");
      }
    }
    if (kind == StreamKind::kRead) continue;
    absl::StrAppend(&text, "  st.global", vector, ".f32 [%a], ",
                    Registers("%f", kind == StreamKind::kWrite ? 0 : u * words, words),
                    ";\n  add.s64 %a, %a, %step;\n");
  }
  return text;
}

constexpr char kStreamBefore[] = R"(  .reg .pred %more, %keep;
  .reg .b32 %rounds, %passes, %pass, %round, %block, %size, %thread, %threads, %bits, %sum;
  .reg .b64 %a0, %b0, %c0, %a, %b, %c, %step, %offset;
  .reg .f32 %scale, %f<16>, %g<16>;
  ld.param.u64 %a0, [a];
  ld.param.u64 %b0, [b];
  ld.param.u64 %c0, [c];
  ld.param.u32 %rounds, [rounds];
  ld.param.u32 %passes, [passes];
  cvta.to.global.u64 %a0, %a0;
  cvta.to.global.u64 %b0, %b0;
  cvta.to.global.u64 %c0, %c0;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %thread, %block, %size, %thread;
  mov.u32 %threads, %nctaid.x;
  mul.lo.u32 %threads, %threads, %size;
  mov.b32 %sum, 0;
  mov.f32 %scale, 0f3f000000;
)";

// ---- multiply-add in registers

struct FmaForm {
  const char* name;
  const char* variant;
  const char* instruction;
  const char* type;       // of a register
  const char* factor;     // 0.5, so that every chain stays between 1 and 4
  const char* addend;     // 1
  const char* first;      // of chain 0; the others count up in the last digit
  const char* bits_type;  // to take a result as bits
  uint64_t BenchWork::*counter;
  int operations;
};
constexpr FmaForm kFmaForms[] = {
    {"fma_f32", "fma.rn.f32", "fma.rn.f32", ".f32", "0f3f000000", "0f3f800000", "0f4000000", ".b32",
     &BenchWork::f32_operations, 2},
    {"fma_f64", "fma.rn.f64", "fma.rn.f64", ".f64", "0d3fe0000000000000", "0d3ff0000000000000",
     "0d400000000000000", ".b64", &BenchWork::f64_operations, 2},
    {"fma_f16", "fma.rn.f16x2", "fma.rn.f16x2", ".b32", "0x38003800", "0x3c003c00", "0x4000400",
     ".b32", &BenchWork::f16_operations, 4},
};

// A loop of `rounds` around `body`, and a store that never happens (a is 0), so that no compiler
// drops what came before: `fold` leaves the results in %sum, 64 bits.
std::string ComputeText(std::string_view version, std::string_view target,
                        std::string_view registers, std::string_view before, std::string_view body,
                        std::string_view fold) {
  return absl::StrCat(Header(version, target), Av(registers),
                      "  .reg .pred %more, %keep;\n"
                      "  .reg .b32 %rounds, %round;\n"
                      "  .reg .b64 %a, %sum, %bits;\n"
                      "  ld.param.u64 %a, [a];\n"
                      "  ld.param.u32 %rounds, [rounds];\n",
                      Av(before),
                      "  mov.b32 %round, 0;\n"
                      "ROUND:\n",
                      Av(body),
                      "  add.u32 %round, %round, 1;\n"
                      "  setp.lt.u32 %more, %round, %rounds;\n"
                      "  @%more bra ROUND;\n"
                      "  mov.b64 %sum, 0;\n",
                      Av(fold),
                      "  setp.ne.u64 %keep, %a, 0;\n"
                      "  @%keep st.global.b64 [%a], %sum;\n"
                      "  ret;\n}\n");
}

// %sum ^= register, whatever its width.
std::string Fold(std::string_view bits_type, std::string_view name) {
  if (bits_type == ".b64") {
    return absl::StrCat("  mov.b64 %bits, ", Av(name), ";\n  xor.b64 %sum, %sum, %bits;\n");
  }
  return absl::StrCat("  mov.b64 %bits, {", Av(name), ", ", Av(name),
                      "};\n  xor.b64 %sum, %sum, %bits;\n");
}

BenchKernel FmaBench(const FmaForm& form) {
  std::string before = absl::StrCat("  mov", form.type, " %m, ", form.factor, ";\n  mov", form.type,
                                    " %n, ", form.addend, ";\n");
  std::string body;
  std::string fold;
  for (int c = 0; c < kFmaChains; ++c) {
    absl::StrAppend(&before, "  mov", form.type, " %x", c, ", ", form.first, c, ";\n");
    absl::StrAppend(&fold, Fold(form.bits_type, absl::StrCat("%x", c)));
  }
  for (int u = 0; u < kFmaUnroll; ++u) {
    for (int c = 0; c < kFmaChains; ++c) {
      absl::StrAppend(&body, "  ", form.instruction, " %x", c, ", %x", c, ", %m, %n;\n");
    }
  }
  BenchKernel kernel;
  kernel.name = form.name;
  kernel.variant = form.variant;
  kernel.ptx = ComputeText("7.0", "sm_75",
                           absl::StrCat("  .reg ", form.type, " %m, %n, %x<", kFmaChains, ">;\n"),
                           before, body, fold);
  kernel.thread_round.*form.counter =
      static_cast<uint64_t>(form.operations) * kFmaChains * kFmaUnroll;
  return kernel;
}

// ---- tensor cores

struct MmaForm {
  const char* name;
  int arch_min, arch_max;
  const char* version;
  const char* target;
  int m, n, k;
  const char* types;        // d, a, b, c
  const char* accumulator;  // type of a register
  int accumulators;         // registers of one thread
  const char* first;        // of the first chain's accumulators; the last digit counts up
  const char* multiplicand;
  int a_registers, b_registers;
  const char* value;  // all of a and b: 2^-10, or 1 in integers
};
constexpr int kMmaChains = 8;
constexpr int kAnyArch = 1000;
constexpr MmaForm kMmaForms[] = {
    {"mma_f16", 75, 75, "7.0", "sm_75", 16, 8, 8, ".f32.f16.f16.f32", ".f32", 4, "0f3f8000", ".b32",
     2, 1, "0x14001400"},
    {"mma_f16", 80, kAnyArch, "7.0", "sm_80", 16, 8, 16, ".f32.f16.f16.f32", ".f32", 4, "0f3f8000",
     ".b32", 4, 2, "0x14001400"},
    {"mma_f16_acc_f16", 75, 75, "7.0", "sm_75", 16, 8, 8, ".f16.f16.f16.f16", ".b32", 2, "0x3c003c",
     ".b32", 2, 1, "0x14001400"},
    {"mma_f16_acc_f16", 80, kAnyArch, "7.0", "sm_80", 16, 8, 16, ".f16.f16.f16.f16", ".b32", 2,
     "0x3c003c", ".b32", 4, 2, "0x14001400"},
    {"mma_bf16", 80, kAnyArch, "7.0", "sm_80", 16, 8, 16, ".f32.bf16.bf16.f32", ".f32", 4,
     "0f3f8000", ".b32", 4, 2, "0x3a803a80"},
    {"mma_tf32", 80, kAnyArch, "7.0", "sm_80", 16, 8, 8, ".f32.tf32.tf32.f32", ".f32", 4,
     "0f3f8000", ".b32", 4, 2, "0x3a800000"},
    {"mma_int8", 75, 75, "7.0", "sm_75", 8, 8, 16, ".s32.s8.s8.s32", ".b32", 2, "", ".b32", 1, 1,
     "0x01010101"},
    {"mma_int8", 80, kAnyArch, "7.0", "sm_80", 16, 8, 32, ".s32.s8.s8.s32", ".b32", 4, "", ".b32",
     4, 2, "0x01010101"},
    {"mma_f64", 80, kAnyArch, "7.0", "sm_80", 8, 8, 4, ".f64.f64.f64.f64", ".f64", 2,
     "0d3ff00000000000", ".f64", 1, 1, "0d3f50000000000000"},
    // One instruction of sm_90 does what sixteen of those do.
    {"mma_f64", 90, kAnyArch, "7.8", "sm_90", 16, 8, 16, ".f64.f64.f64.f64", ".f64", 4,
     "0d3ff00000000000", ".f64", 8, 4, "0d3f50000000000000"},
};

BenchKernel MmaBench(const MmaForm& form) {
  const std::string shape = absl::StrCat("m", form.m, "n", form.n, "k", form.k);
  std::string before;
  std::string body;
  std::string fold;
  const auto set = [&](const char* type, std::string_view name, std::string_view value) {
    absl::StrAppend(&before, "  mov", type, " ", Av(name), ", ", Av(value), ";\n");
  };
  for (int i = 0; i < form.a_registers; ++i) {
    set(form.multiplicand, absl::StrCat("%a", i), form.value);
  }
  for (int i = 0; i < form.b_registers; ++i) {
    set(form.multiplicand, absl::StrCat("%b", i), form.value);
  }
  // Different from chain to chain: no compiler finds two of them to be the same.
  for (int i = 0; i < kMmaChains * form.accumulators; ++i) {
    const std::string name = absl::StrCat("%x", i);
    set(form.accumulator, name, absl::StrCat(form.first, 10 + i));
    absl::StrAppend(&fold,
                    Fold(std::string_view(form.accumulator) == ".f64" ? ".b64" : ".b32", name));
  }
  for (int u = 0; u < kMmaUnroll; ++u) {
    for (int c = 0; c < kMmaChains; ++c) {
      const std::string sums = Registers("%x", c * form.accumulators, form.accumulators);
      absl::StrAppend(&body, "  mma.sync.aligned.", shape, ".row.col", form.types, " ", sums, ", ",
                      Braced("%a", form.a_registers), ", ", Braced("%b", form.b_registers), ", ",
                      sums, ";\n");
    }
  }
  BenchKernel kernel;
  kernel.name = form.name;
  kernel.variant = shape;
  kernel.ptx = ComputeText(form.version, form.target,
                           absl::StrCat("  .reg ", form.multiplicand, " %a<", form.a_registers,
                                        ">, %b<", form.b_registers, ">;\n  .reg ", form.accumulator,
                                        " %x<", kMmaChains * form.accumulators, ">;\n"),
                           before, body, fold);
  kernel.thread_round.tensor_operations =
      static_cast<uint64_t>(2) * form.m * form.n * form.k * kMmaChains * kMmaUnroll / kWarpThreads;
  return kernel;
}

bool Has(const MmaForm& form, int arch) { return form.arch_min <= arch && arch <= form.arch_max; }

bool IsMeasured(std::string_view name, const std::vector<BenchKernel>& kernels) {
  for (const BenchKernel& kernel : kernels) {
    if (kernel.name == name) return true;
  }
  return false;
}

}  // namespace

BenchKernel StreamBench(StreamKind kind, int vector_bytes, int unroll) {
  const StreamForm form = FormOf(kind);
  const int words = vector_bytes / 4;
  BenchKernel kernel;
  kernel.name = form.name;
  kernel.variant = absl::StrCat(vector_bytes, " bytes an access, ", unroll, " at a time");
  std::string text = absl::StrCat(Header("7.0", "sm_75"), kStreamBefore);
  for (int i = 0; i < words; ++i) absl::StrAppend(&text, "  mov.f32 %f", i, ", 0f3f800000;\n");
  absl::StrAppend(&text, "  mul.wide.u32 %offset, %thread, ", vector_bytes,
                  ";\n  mul.wide.u32 %step, %threads, ", vector_bytes,
                  ";\n  mov.b32 %pass, 0;\nPASS:\n"
                  "  add.s64 %a, %a0, %offset;\n"
                  "  add.s64 %b, %b0, %offset;\n"
                  "  add.s64 %c, %c0, %offset;\n"
                  "  mov.b32 %round, 0;\nROUND:\n",
                  StreamRound(kind, words, unroll),
                  "  add.u32 %round, %round, 1;\n"
                  "  setp.lt.u32 %more, %round, %rounds;\n"
                  "  @%more bra ROUND;\n"
                  "  add.u32 %pass, %pass, 1;\n"
                  "  setp.lt.u32 %more, %pass, %passes;\n"
                  "  @%more bra PASS;\n");
  if (kind == StreamKind::kRead) {
    // Never so: nobody has an array there. So that no compiler drops the reading.
    absl::StrAppend(&text,
                    "  setp.eq.u64 %keep, %b0, 1;\n"
                    "  @%keep st.global.b32 [%b0], %sum;\n");
  }
  kernel.ptx = absl::StrCat(text, "  ret;\n}\n");
  kernel.arrays = form.arrays;
  kernel.thread_round_bytes = static_cast<uint32_t>(unroll * vector_bytes);
  const uint64_t bytes = kernel.thread_round_bytes;
  const uint64_t arrays_read = static_cast<uint64_t>(form.arrays) - (form.writes ? 1 : 0);
  kernel.thread_round.read_bytes = arrays_read * bytes;
  kernel.thread_round.written_bytes = form.writes ? bytes : 0;
  if (kind == StreamKind::kTriad) kernel.thread_round.f32_operations = bytes / 4 * 2;
  return kernel;
}

ComputeBenches ComputeBenchesOf(int arch) {
  ComputeBenches benches;
  for (const FmaForm& form : kFmaForms) benches.kernels.push_back(FmaBench(form));
  for (const MmaForm& form : kMmaForms) {
    if (Has(form, arch)) benches.kernels.push_back(MmaBench(form));
  }
  std::string last;
  for (const MmaForm& form : kMmaForms) {
    if (last == form.name || IsMeasured(form.name, benches.kernels)) continue;
    last = form.name;
    benches.left_out.push_back(absl::StrCat(form.name, ": sm_", arch, " has none"));
  }
  // What these reach is more than any mma.sync does.
  if (arch == 90) {
    benches.left_out.push_back("wgmma: only mma.sync is measured; wgmma may be faster");
  }
  if (arch >= 100 && arch < 120) {
    benches.left_out.push_back("tcgen05.mma: only mma.sync is measured; tcgen05.mma is faster");
  }
  return benches;
}

BenchKernel EmptyBench() {
  BenchKernel kernel;
  kernel.name = "launch";
  kernel.variant = "empty kernel";
  kernel.ptx = absl::StrCat(Header("7.0", "sm_75"), "  ret;\n}\n");
  return kernel;
}

BenchKernel DelayBench() { return FmaBench(kFmaForms[0]); }

BenchWork WorkOf(const BenchKernel& kernel, const BenchShape& shape) {
  const uint64_t times = uint64_t{shape.grid} * shape.block * uint64_t{shape.rounds} * shape.passes;
  BenchWork work = kernel.thread_round;
  for (uint64_t BenchWork::*const count :
       {&BenchWork::f16_operations, &BenchWork::f32_operations, &BenchWork::f64_operations,
        &BenchWork::tensor_operations, &BenchWork::read_bytes, &BenchWork::written_bytes}) {
    work.*count *= times;
  }
  return work;
}

uint64_t StreamArrayBytes(const BenchKernel& kernel, const BenchShape& shape) {
  return uint64_t{shape.grid} * shape.block * shape.rounds * kernel.thread_round_bytes;
}

}  // namespace assay
