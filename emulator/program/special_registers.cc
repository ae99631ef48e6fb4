#include "emulator/program/special_registers.h"

#include <utility>

namespace assay::emulator {

std::optional<SpecialRegister> FindSpecialRegister(std::string_view name) {
  using R = SpecialRegister;
  static constexpr std::pair<std::string_view, R> kNames[] = {
      {"%tid.x", R::kTidX},
      {"%tid.y", R::kTidY},
      {"%tid.z", R::kTidZ},
      {"%ntid.x", R::kNtidX},
      {"%ntid.y", R::kNtidY},
      {"%ntid.z", R::kNtidZ},
      {"%ctaid.x", R::kCtaidX},
      {"%ctaid.y", R::kCtaidY},
      {"%ctaid.z", R::kCtaidZ},
      {"%nctaid.x", R::kNctaidX},
      {"%nctaid.y", R::kNctaidY},
      {"%nctaid.z", R::kNctaidZ},
      {"%laneid", R::kLaneid},
      {"%warpid", R::kWarpid},
      {"%nwarpid", R::kNwarpid},
      {"%smid", R::kSmid},
      {"%nsmid", R::kNsmid},
      {"%gridid", R::kGridid},
      {"%lanemask_eq", R::kLanemaskEq},
      {"%lanemask_le", R::kLanemaskLe},
      {"%lanemask_lt", R::kLanemaskLt},
      {"%lanemask_ge", R::kLanemaskGe},
      {"%lanemask_gt", R::kLanemaskGt},
      {"%dynamic_smem_size", R::kDynamicSmemSize},
      {"%total_smem_size", R::kTotalSmemSize},
      {"%envreg1", R::kEnvreg1},
      {"%envreg2", R::kEnvreg2},
      // One block a cluster.
      {"%clusterid.x", R::kCtaidX},
      {"%clusterid.y", R::kCtaidY},
      {"%clusterid.z", R::kCtaidZ},
      {"%nclusterid.x", R::kNctaidX},
      {"%nclusterid.y", R::kNctaidY},
      {"%nclusterid.z", R::kNctaidZ},
      {"%cluster_ctarank", R::kZero},
      {"%cluster_ctaid.x", R::kZero},
      {"%cluster_ctaid.y", R::kZero},
      {"%cluster_ctaid.z", R::kZero},
  };
  for (const auto& [known, which] : kNames) {
    if (known == name) return which;
  }
  return std::nullopt;
}

}  // namespace assay::emulator
