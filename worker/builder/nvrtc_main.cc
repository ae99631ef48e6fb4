// assay-nvrtc: compiles CUDA C++ to PTX with NVRTC, inside the build sandbox. The builder starts it
// with its own options; what follows "--" goes to NVRTC.
//
//   assay-nvrtc --library=FILE --query              prints "nvrtc 13.0 75 80 ..."
//   assay-nvrtc --library=FILE --output=FILE [--hoist=HEADER]... [--macro=NAME=VALUE]...
//               [--prelude=FILE] [--create-pch | --use-pch=FILE] --source=FILE... -- OPTION...
//
// The program is: the hoisted includes, small headers that everyone counts on, the macros, the
// prelude, the sources one after the other.
// Where a source defines what one of our headers does, the header goes without it.
// With --create-pch it is the includes alone, and the output is their precompiled form. The log
// goes to standard output with the files' own names; its last line says how long it took. Exit
// codes: 0; 1 for errors in the program; 2 for anything else.
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/builder/cuda_headers.h"
#include "worker/builder/left_out_lines.h"
#include "worker/builder/nvrtc_library.h"

namespace assay {
namespace {

constexpr std::string_view kSourcePrefix = "/src/";
// What nvcc, PyTorch or both include on their own: INFINITY, int64_t, FLT_MAX.
constexpr std::string_view kImplied[] = {"float.h", "math.h", "stdint.h"};

struct Options {
  std::string library;
  std::string output;
  std::string prelude;
  std::string use_pch;
  bool create_pch = false;
  bool query = false;
  std::vector<std::string> hoisted;
  std::vector<std::string> macros;
  std::vector<std::string> sources;
  std::vector<std::string> compiler;
};

bool Take(std::string_view argument, std::string_view name, std::string* value) {
  if (!argument.starts_with(name)) return false;
  *value = argument.substr(name.size());
  return true;
}

bool TakeAll(std::string_view argument, std::string_view name, std::vector<std::string>* values) {
  std::string value;
  if (!Take(argument, name, &value)) return false;
  values->push_back(value);
  return true;
}

bool ParseOptions(int argc, char** argv, Options* options) {
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string_view argument = argv[i];
    options->query = options->query || argument == "--query";
    options->create_pch = options->create_pch || argument == "--create-pch";
    const bool known = argument == "--query" || argument == "--create-pch" ||
                       Take(argument, "--library=", &options->library) ||
                       Take(argument, "--output=", &options->output) ||
                       Take(argument, "--prelude=", &options->prelude) ||
                       Take(argument, "--use-pch=", &options->use_pch) ||
                       TakeAll(argument, "--hoist=", &options->hoisted) ||
                       TakeAll(argument, "--macro=", &options->macros) ||
                       TakeAll(argument, "--source=", &options->sources);
    if (!known) {
      std::printf("assay-nvrtc: unknown option %s\n", argv[i]);
      return false;
    }
  }
  for (++i; i < argc; ++i) options->compiler.push_back(argv[i]);
  return true;
}

bool ReadText(const std::string& path, std::string* text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::printf("assay-nvrtc: cannot read %s\n", path.c_str());
    return false;
  }
  text->append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return true;
}

bool MakeProgram(const Options& options, std::string* text) {
  for (const std::string& header : options.hoisted) *text += "#include <" + header + ">\n";
  if (options.create_pch) return true;
  for (const std::string_view header : kImplied) {
    text->append("#include <").append(header).append(">\n");
  }
  for (const std::string& macro : options.macros) {
    const size_t equals = macro.find('=');
    *text += "#define " + macro.substr(0, equals) + " " + macro.substr(equals + 1) + "\n";
  }
  if (!options.prelude.empty() && !ReadText(options.prelude, text)) return false;
  for (const std::string& source : options.sources) {
    *text += "\n#line 1 \"" + source + "\"\n";
    if (!ReadText(source, text)) return false;
  }
  return true;
}

// Takes out what NVRTC says of precompiled headers, and the folder of the sources.
std::string CleanLog(const std::string& log, const std::string& pch, bool* pch_used) {
  std::string clean;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    std::string_view line(log.data() + begin, end - begin);
    begin = end + 1;
    if (!pch.empty() && line.ends_with("using precompiled header file \"" + pch + "\"")) {
      *pch_used = true;
      continue;
    }
    if (line.starts_with("Warning #20282-D") || line.starts_with("Remark: The warnings can be")) {
      continue;
    }
    if (line.starts_with(kSourcePrefix)) line.remove_prefix(kSourcePrefix.size());
    if (line.empty() && (clean.empty() || clean.ends_with("\n\n"))) continue;
    clean.append(line);
    clean += '\n';
  }
  return clean;
}

// NVRTC writes the sandbox's path of a source into `.file`; the candidate knows its name only.
std::string CleanPtx(const std::string& ptx) {
  const std::string mark = "\"" + std::string(kSourcePrefix);
  std::string clean;
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size());
    const std::string_view line(ptx.data() + begin, end - begin);
    begin = end + 1;
    const size_t at = line.find(mark);
    if (line.find(".file") < at && at != line.npos) {
      clean.append(line.substr(0, at + 1));
      clean.append(line.substr(at + mark.size()));
    } else {
      clean.append(line);
    }
    clean += '\n';
  }
  return clean;
}

bool Write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (file) return true;
  std::printf("assay-nvrtc: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

int Query(const NvrtcLibrary& library) {
  const NvrtcVersion version = library.Version();
  std::printf("nvrtc %d.%d", version.major, version.minor);
  for (const int architecture : version.architectures) std::printf(" %d", architecture);
  std::printf("\n");
  return 0;
}

// Compiles; once more, without what the program defines itself, when our headers were in its way.
// When that does not help either, the first errors are the ones to show.
NvrtcOutcome Compile(const NvrtcLibrary& library, NvrtcJob job) {
  for (size_t i = 0; i < kCudaHeaderCount; ++i) {
    job.headers.push_back({kCudaHeaders[i].name, kCudaHeaders[i].text});
  }
  NvrtcOutcome outcome = library.Compile(job);
  if (outcome.code != kNvrtcCompilationError) return outcome;
  const HeaderLines lines = LinesInTheWay(outcome.log, job.headers);
  if (lines.empty()) return outcome;
  std::vector<std::string> texts;
  for (const auto& [name, text] : job.headers) texts.push_back(WithoutLines(name, text, lines));
  for (size_t i = 0; i < texts.size(); ++i) job.headers[i].second = texts[i].c_str();
  NvrtcOutcome second = library.Compile(job);
  return second.code == 0 ? second : outcome;
}

int Run(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  // A precompiled header is only good where memory is laid out as it was when it was made. So no
  // allocation may depend on the sources: all of them come from the heap, none from mmap.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_ARENA_MAX, 1);
  Options options;
  if (!ParseOptions(argc, argv, &options)) return 2;
  NvrtcLibrary library;
  std::string error;
  if (!library.Open(options.library, &error)) {
    std::printf("assay-nvrtc: %s\n", error.c_str());
    return 2;
  }
  if (options.query) return Query(library);
  NvrtcJob job;
  job.name = options.sources.empty() ? "headers.cu" : options.sources[0];
  if (!MakeProgram(options, &job.text)) return 2;
  job.options = options.compiler;
  if (options.create_pch) job.options.push_back("--create-pch=" + options.output);
  if (!options.use_pch.empty()) job.options.push_back("--use-pch=" + options.use_pch);
  const NvrtcOutcome outcome = Compile(library, std::move(job));
  bool pch_used = false;
  std::fputs(CleanLog(outcome.log, options.use_pch, &pch_used).c_str(), stdout);
  if (outcome.code == kNvrtcOutOfMemory) {
    std::printf("assay-nvrtc: memory exhausted\n");
  } else if (outcome.code != 0 && outcome.code != kNvrtcCompilationError) {
    std::printf("assay-nvrtc: %s\n", outcome.what.c_str());
  }
  if (outcome.code == 0 && !options.create_pch && !Write(options.output, CleanPtx(outcome.ptx))) {
    return 2;
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("assay-nvrtc: %.1f ms%s\n", took.count(), pch_used ? ", precompiled headers" : "");
  if (outcome.code == 0) return 0;
  return outcome.code == kNvrtcCompilationError ? 1 : 2;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::Run(argc, argv); }
