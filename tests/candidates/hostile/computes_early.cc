/* assay-candidate
problem: "vector_add"
language: CPP
label: "computes_early"
# Expected: GAMED (HIDDEN_WORK). Takes over the guest's loop in its first call. From then on it computes
# when it is told to get ready, where the inputs can be seen already, and has nothing left to do when
# the clock starts.
*/
#include <immintrin.h>
#include <link.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {

// Byte offsets in the page that runner and guest share.
constexpr int kCommand = 0, kAction = 4, kState = 64, kArmed = 68, kGo = 128, kDone = 136;
char* page = nullptr;

volatile uint32_t& Word(int offset) { return *reinterpret_cast<volatile uint32_t*>(page + offset); }
volatile uint64_t& Long(int offset) { return *reinterpret_cast<volatile uint64_t*>(page + offset); }

bool IsReadable(const char* at) { return write(1, at + kArmed, 4) == 4; }

// The page's address stands among the variables of the main program, which comes first. A page is taken for it when a
// call is in progress there.
int FindPage(dl_phdr_info* info, size_t, void*) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    for (const char* at = begin; at + 8 <= begin + segment.p_memsz && page == nullptr; at += 8) {
      char* value = *reinterpret_cast<char* const*>(at);
      const uintptr_t address = reinterpret_cast<uintptr_t>(value);
      if (address < 65536 || (address & 4095) != 0 || address >> 47 != 0 || !IsReadable(value)) continue;
      page = value;
      if (Word(kArmed) == 0 || Word(kArmed) != Word(kCommand) || Long(kGo) == 0 || Long(kGo) == Long(kDone)) page = nullptr;
    }
  }
  return 1;
}

}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  dl_iterate_phdr(FindPage, nullptr);
  if (page == nullptr) return;
  while (true) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Long(kDone) = Long(kGo);
    Word(kState) = 2;
    const uint32_t command = Word(kCommand);
    while (Word(kCommand) == command) syscall(SYS_futex, page, FUTEX_WAIT, command, nullptr, nullptr, 0);
    const uint64_t go = Long(kGo);
    if (Word(kAction) == 0) {
      for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
    }
    Word(kState) = 3;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Word(kArmed) = Word(kCommand);
    while (Long(kGo) == go) _mm_pause();
  }
}
