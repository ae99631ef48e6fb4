#include "worker/backend/cuda/ptx_signature.h"

#include <cstdlib>
#include <string>

#include "base/limits.h"
#include "worker/backend/cuda/ptx_words.h"

namespace assay {
namespace {

int64_t BytesOf(std::string_view type) {
  const size_t digits = type.find_first_of("0123456789");
  return digits == std::string_view::npos ? 0
                                          : std::atoi(std::string(type.substr(digits)).c_str()) / 8;
}

int64_t NumberOf(std::string_view word) {
  return std::strtoll(std::string(word).c_str(), nullptr, 10);
}

// After "(": parameters up to ")".
void ScanParameters(PtxWords* words, KernelSignature* kernel) {
  KernelParameter parameter;
  bool in_array = false;
  for (std::string_view word = words->Next(); !word.empty(); word = words->Next()) {
    if (word == "," || word == ")") {
      if (!parameter.type.empty() && kernel->parameters.size() <= limits::kLaunchArgumentsMax) {
        kernel->parameters.push_back(parameter);
      }
      parameter = {};
      if (word == ")") return;
    } else if (word == "[") {
      in_array = true;
    } else if (word == "]") {
      in_array = false;
    } else if (in_array) {
      parameter.bytes *= NumberOf(word);
    } else if (word == ".param") {
      continue;
    } else if (word == ".ptr") {
      parameter.is_pointer = true;
    } else if (word == ".align") {
      words->Next();
    } else if (word.front() == '.' && parameter.type.empty()) {
      parameter.type = std::string(word.substr(1));
      parameter.bytes = BytesOf(word);
    } else if (word.front() != '.') {
      parameter.name = std::string(word);
    }
  }
}

// What stands between the parameters and the body.
void ScanDirectives(PtxWords* words, KernelSignature* kernel) {
  for (std::string_view word = words->Next(); !word.empty() && word != "{" && word != ";";
       word = words->Next()) {
    if (word != ".maxntid" && word != ".reqntid") continue;
    const bool required = word == ".reqntid";
    int64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
      const int64_t count = NumberOf(words->Next());
      threads *= count;
      if (required) kernel->required_block[static_cast<size_t>(i)] = count;
      PtxWords ahead = *words;
      if (ahead.Next() != ",") break;
      words->Next();
    }
    if (!required) kernel->block_threads_max = threads;
  }
}

}  // namespace

std::vector<KernelSignature> ScanPtxKernels(std::string_view ptx) {
  std::vector<KernelSignature> kernels;
  PtxWords words(ptx);
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    if (word != ".entry") continue;
    KernelSignature kernel;
    kernel.name = std::string(words.Next());
    PtxWords ahead = words;
    if (ahead.Next() == "(") {
      words.Next();
      ScanParameters(&words, &kernel);
    }
    ScanDirectives(&words, &kernel);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace assay
