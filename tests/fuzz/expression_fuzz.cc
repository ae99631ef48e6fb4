// Expressions from anywhere: parsing and evaluation end, and an expression's own text parses again
// to the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kernels/expression/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = assay::Expression::Parse(text);
  if (!parsed.ok()) return 0;
  const assay::ValueMap values = {{"n", 1000}, {"rows", 7}, {"BLOCK", 128}, {"zero", 0}};
  const auto value = parsed->Evaluate(values);
  const auto again = assay::Expression::Parse(parsed->text());
  if (!again.ok() || again->names() != parsed->names()) std::abort();
  const auto same = again->Evaluate(values);
  if (same.ok() != value.ok() || (value.ok() && *same != *value)) std::abort();
  return 0;
}
