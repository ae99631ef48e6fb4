#include "emulator/program/control_flow.h"

#include <algorithm>

namespace assay::emulator {

uint32_t OrderBlocks(uint32_t first, uint32_t last, const std::vector<Successors>& successors,
                     uint32_t priority_base, Program* program) {
  const uint32_t count = last - first;
  std::vector<bool> leads(count + 1, false);
  leads[0] = true;
  for (uint32_t i = 0; i < count; ++i) {
    for (const uint32_t target : successors[i].targets) leads[target - first] = true;
    if (!successors[i].targets.empty() || !successors[i].falls_through) leads[i + 1] = true;
  }
  std::vector<uint32_t> block_of(count);
  std::vector<uint32_t> starts;
  for (uint32_t i = 0; i < count; ++i) {
    if (leads[i]) starts.push_back(i);
    block_of[i] = static_cast<uint32_t>(starts.size() - 1);
    program->ops[first + i].leader = leads[i];
  }
  // Blocks that a block may go on to, the last in the text first.
  const auto next_of = [&](uint32_t block) {
    const uint32_t end = block + 1 < starts.size() ? starts[block + 1] : count;
    std::vector<uint32_t> next;
    const Successors& s = successors[end - 1];
    for (const uint32_t target : s.targets) next.push_back(block_of[target - first]);
    if (s.falls_through && end < count) next.push_back(block_of[end]);
    std::sort(next.begin(), next.end(), std::greater<>());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    return next;
  };
  struct Visit {
    uint32_t block;
    std::vector<uint32_t> next;
    size_t done = 0;
  };
  std::vector<bool> seen(starts.size(), false);
  std::vector<uint32_t> post_order;
  std::vector<Visit> stack;
  const auto walk = [&](uint32_t root) {
    if (seen[root]) return;
    seen[root] = true;
    stack.push_back({root, next_of(root)});
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.done == top.next.size()) {
        post_order.push_back(top.block);
        stack.pop_back();
        continue;
      }
      const uint32_t block = top.next[top.done++];
      if (seen[block]) continue;
      seen[block] = true;
      stack.push_back({block, next_of(block)});
    }
  };
  // What cannot be reached comes last.
  std::vector<uint32_t> rank(starts.size(), 0);
  walk(0);
  const auto reachable = static_cast<uint32_t>(post_order.size());
  for (uint32_t i = 0; i < reachable; ++i) rank[post_order[i]] = reachable - 1 - i;
  uint32_t next_rank = reachable;
  for (uint32_t block = 0; block < starts.size(); ++block) {
    if (!seen[block]) rank[block] = next_rank++;
  }
  program->priority.resize(last);
  for (uint32_t i = 0; i < count; ++i)
    program->priority[first + i] = priority_base + rank[block_of[i]];
  return priority_base + next_rank;
}

}  // namespace assay::emulator
