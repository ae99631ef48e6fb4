// The filter of ListEvaluations: a subset of AIP-160. Pure functions on hostile text.
//
//   filter     = [ comparison *( "AND" comparison ) ]
//   comparison = field ( "=" | "!=" | "<" | ">" ) value
//   value      = quoted text ("..." or '...', with \ before a quote or \) or a bare word
//
// problem, candidate, state, verdict, level, device_class and label take = and !=; create_time
// takes < and > with an RFC 3339 time. "gelu" and "problems/gelu" are the same problem, likewise
// for candidates.
#ifndef ASSAY_SERVER_SERVICES_FILTER_H_
#define ASSAY_SERVER_SERVICES_FILTER_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "store/store.h"

namespace assay {

// INVALID_ARGUMENT with reason FILTER_INVALID and the column (from 1) of what is wrong; also for
// more than limits::kFilterBytesMax bytes. Blank text: no conditions.
absl::StatusOr<std::vector<EvaluationCondition>> ParseEvaluationFilter(std::string_view text);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_FILTER_H_
