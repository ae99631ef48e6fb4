#include "kernels/testing/problems.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace assay::testing {

v1::Problem ProblemFromText(const std::string& text) {
  v1::Problem problem;
  if (!google::protobuf::TextFormat::ParseFromString(text, &problem)) {
    ADD_FAILURE() << "the problem's text does not parse";
    problem.Clear();
  }
  return problem;
}

v1::Problem ScaleRowsProblem() {
  return ProblemFromText(R"pb(
    name: "problems/scale_rows"
    version: 1
    summary: "y = s x by rows"
    arithmetic: "f32 or better"
    axes { name: "rows" }
    axes { name: "cols" max: 1048576 }
    tensors {
      name: "y"
      dtype: F32
      role: OUTPUT
      shape: "rows"
      shape: "cols"
      tolerance { kind: SCALED relative_l2_max: 1e-6 element_max: 1e-5 scale_per_row: true }
    }
    tensors {
      name: "x"
      dtype: F32
      role: INPUT
      shape: "rows"
      shape: "cols"
      distribution { normal { stddev: 1 } }
      scalable: true
    }
    tensors {
      name: "s"
      dtype: F32
      role: INPUT
      shape: "rows"
      distribution { uniform { low: 0.5 high: 2 } }
    }
    constraints: "rows * cols <= 1073741824"
    reference: "reference.cc"
    transforms {
      permutation {
        inputs { tensor: "x" dimension: 0 }
        inputs { tensor: "s" dimension: 0 }
        outputs { tensor: "y" dimension: 0 }
      }
    }
    transforms {
      permutation {
        inputs { tensor: "x" dimension: 1 }
        outputs { tensor: "y" dimension: 1 }
      }
    }
    transforms {
      power_of_two_scale {
        inputs { tensor: "x" power: 1 }
        outputs { tensor: "y" power: 1 }
        exponent_max: 4
        signed: true
      }
    }
    work { unit: FLOP_F32 operations: "rows * cols" }
    workloads {
      name: "small"
      axes { key: "rows" value: 4 }
      axes { key: "cols" value: 8 }
    }
    workloads {
      name: "ragged"
      axes { key: "rows" value: 7 }
      axes { key: "cols" value: 13 }
      verify_only: true
    }
    files {
      path: "reference.cc"
      content: "extern \"C\" void scale_rows_reference(const float* x, const float* s, double* y, int64_t rows, int64_t cols) { for (int64_t i = 0; i < rows * cols; ++i) y[i] = double(x[i]) * s[i / cols]; }"
    })pb");
}

std::string ProblemsDirectory() {
  const char* source = std::getenv("ASSAY_SOURCE_DIR");
  return source == nullptr ? std::string() : absl::StrCat(source, "/kernels/problems");
}

std::vector<std::string> ProblemFolders() {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(ProblemsDirectory(), error)) {
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool HasCommand(const std::string& command) {
  return std::system(absl::StrCat("command -v ", command, " >/dev/null 2>&1").c_str()) == 0;
}

absl::StatusOr<std::string> CompileCpp(const std::string& path, const std::string& text,
                                       const std::string& arguments) {
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, text));
  const std::string command =
      absl::StrCat("g++ -std=c++20 -Wall -Wextra -Werror ", arguments, " ", path, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError("popen failed");
  auto output = ReadToEnd(fileno(pipe), 1 << 20);
  const int code = pclose(pipe);
  if (!output.ok()) return output.status();
  if (code != 0) return absl::InvalidArgumentError(*output);
  return output;
}

}  // namespace assay::testing
