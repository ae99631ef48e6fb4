#include "emulator/program/register_sharing.h"

#include <cstddef>
#include <map>
#include <numeric>

namespace assay::emulator {
namespace {

struct Life {
  bool used = false;
  bool local = true;  // to one block, and written first
  uint32_t first = 0;
  uint32_t last = 0;
};

std::vector<Life> FindLives(const std::vector<RegisterUse>& uses,
                            const std::vector<bool>& starts_block, const std::vector<int>& bytes) {
  std::vector<uint32_t> block(starts_block.size(), 0);
  for (size_t i = 1; i < block.size(); ++i) block[i] = block[i - 1] + (starts_block[i] ? 1 : 0);
  std::vector<Life> lives(bytes.size());
  for (const RegisterUse& use : uses) {
    Life& life = lives[use.reg];
    if (!life.used) {
      life = {true, use.writes && bytes[use.reg] != 0, use.instruction, use.instruction};
      continue;
    }
    // What writes it first must not read it too.
    if (block[use.instruction] != block[life.first] ||
        (use.instruction == life.first && !use.writes))
      life.local = false;
    life.last = use.instruction;
  }
  return lives;
}

}  // namespace

std::vector<uint32_t> ShareRegisters(const std::vector<RegisterUse>& uses,
                                     const std::vector<bool>& starts_block,
                                     const std::vector<int>& bytes) {
  const std::vector<Life> lives = FindLives(uses, starts_block, bytes);
  std::vector<uint32_t> place(bytes.size());
  std::iota(place.begin(), place.end(), 0);
  std::map<int, std::vector<uint32_t>> free;  // by bytes; the last one is still in the cache
  std::vector<uint32_t> ending;               // at the present instruction
  uint32_t now = 0;
  for (const RegisterUse& use : uses) {
    if (use.instruction != now) {
      // An operation may write one result before it has read all operands.
      for (const uint32_t reg : ending) free[bytes[reg]].push_back(place[reg]);
      ending.clear();
      now = use.instruction;
    }
    const Life& life = lives[use.reg];
    if (!life.local) continue;
    if (use.instruction == life.first && place[use.reg] == use.reg) {
      std::vector<uint32_t>& places = free[bytes[use.reg]];
      if (!places.empty()) {
        place[use.reg] = places.back();
        places.pop_back();
      }
    }
    if (use.instruction == life.last) {
      bool noted = false;
      for (const uint32_t reg : ending) noted = noted || reg == use.reg;
      if (!noted) ending.push_back(use.reg);
    }
  }
  return place;
}

}  // namespace assay::emulator
