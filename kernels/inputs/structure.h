// Input cases that give the contents a structure: which elements are large, equal, zero, in order.
// They find what a nominal draw hides: shortcuts after a look at a few elements, terms that are
// dropped, precision. Internal to kernels; pure.
#ifndef ASSAY_KERNELS_INPUTS_STRUCTURE_H_
#define ASSAY_KERNELS_INPUTS_STRUCTURE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/problem.h"

namespace assay {

// Elements that are generated at once. Element i takes its bits from position i of chunk
// i / kInputChunk.
inline constexpr size_t kInputChunk = 1024;

// Two words a draw: random words for the elements of one chunk.
void FillWords(uint64_t key, uint64_t chunk, uint32_t* words);

enum class Structure {
  kNone,
  kMixed,          // a nominal part and one three times as large; a drawn one of them comes first
  kHeavyTail,      // one element in 32 is large beside the others
  kConstantRows,   // equal along the last dimension, on a grid so coarse that sums are exact
  kOneHot,         // one element of each row is not zero
  kSorted,         // ascending or descending along the last dimension
  kCancelling,     // neighbours cancel exactly, beside small elements
  kExactIntegers,  // of as many bits as every sum of products stays exact with
};

// Of the cases with structure, in the battery's order.
std::span<const std::string_view> StructureNames();
// kNone for every other name.
Structure StructureByName(std::string_view name);

// What one tensor gets. In kOneHot and kSorted it is one drawn input of the scalable ones, so that
// products of two inputs stay well conditioned; kExactIntegers gives one drawn input the wide
// integers and the others narrow ones.
struct StructurePlan {
  Structure kind = Structure::kNone;
  uint64_t key = 0;
  int64_t elements = 0;
  int64_t row = 1;           // elements of the last dimension; of a vector a run
  int64_t boundary = 0;      // kMixed: the first element of the second part
  bool is_reversed = false;  // kMixed: the large part first; kSorted: descending
  double quantum = 1;        // kConstantRows: the grid
  int bits = 1;              // kExactIntegers
};

// `case_key` follows from seed and case, `tensor_key` from the tensor too. `span`: standard
// deviation or width of the tensor's distribution.
StructurePlan PlanStructure(const v1::Problem& problem, const ResolvedWorkload& workload,
                            size_t tensor_index, Structure structure, uint64_t case_key,
                            uint64_t tensor_key, double span);

// How many terms an output's element sums at most, as far as the declared transforms tell: the
// elements of an input without the dimensions that are permuted together with an output's.
int64_t ReductionLengthMax(const v1::Problem& problem, const ResolvedWorkload& workload);

// Changes nominal values of one chunk: kMixed, kHeavyTail, kOneHot, kCancelling.
void Reshape(const StructurePlan& plan, uint64_t chunk, float* values);
void Reshape(const StructurePlan& plan, uint64_t chunk, double* values);

// kExactIntegers: the values of one chunk.
void FillExactIntegers(const StructurePlan& plan, uint64_t chunk, float* values);
void FillExactIntegers(const StructurePlan& plan, uint64_t chunk, double* values);

// kSorted: words whose order as unsigned fractions of 2^32 is that of the row.
void FillSortedWords(const StructurePlan& plan, uint64_t chunk, uint32_t* words);

}  // namespace assay

#endif  // ASSAY_KERNELS_INPUTS_STRUCTURE_H_
