#include "kernels/problem.h"

namespace assay {

size_t DataTypeSize(DataType dtype) {
  switch (dtype) {
    case DataType::kF64:
      return 8;
    case DataType::kF32:
    case DataType::kI32:
      return 4;
    case DataType::kF16:
    case DataType::kBF16:
      return 2;
    case DataType::kI8:
    case DataType::kU8:
      return 1;
  }
  return 1;
}

std::string_view DataTypeCpp(DataType dtype) {
  switch (dtype) {
    case DataType::kF64:
      return "double";
    case DataType::kF32:
      return "float";
    case DataType::kI32:
      return "int32_t";
    case DataType::kF16:
    case DataType::kBF16:
      return "uint16_t";
    case DataType::kI8:
      return "int8_t";
    case DataType::kU8:
      return "uint8_t";
  }
  return "void";
}

std::string ProblemId(std::string_view name) {
  constexpr std::string_view kPrefix = "problems/";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return std::string(name);
}

}  // namespace assay
