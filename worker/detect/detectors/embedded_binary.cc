// Code inside of data: an ELF file, a fat binary or PTX in what a candidate was built with, and
// large data that looks random, as packed code and tables of answers do. So do tables that honest
// kernels bring: a notice only.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/backend/cuda/ptx_statements.h"
#include "worker/detect/byte_entropy.h"
#include "worker/detect/detector.h"
#include "worker/detect/elf_image.h"

namespace assay {
namespace {

using std::string_view_literals::operator""sv;

constexpr size_t kFindingsMax = 20;
constexpr size_t kNameBytesMax = 200;
constexpr size_t kRandomBytesMax = 64 << 10;
constexpr double kRandomBits = 7.5;  // a byte
constexpr size_t kTargetWithin = 64;

struct Header {
  std::string_view bytes;
  std::string_view what;
};
constexpr Header kHeaders[] = {{"\x7f\x45\x4c\x46\x02\x01\x01"sv, "an ELF file"},
                               {"\x50\xed\x55\xba\x01\x00"sv, "a fat binary"},
                               {"\xb1\x43\x62\x46\x01\x00"sv, "a wrapper of a fat binary"}};

DetectorFinding Notice(std::string_view place, size_t offset, size_t size, std::string what) {
  DetectorFinding finding;
  finding.severity = v1::Finding::NOTICE;
  finding.evidence = absl::StrFormat("%s at byte %d of %s, which has %d bytes", what, offset,
                                     std::string(place.substr(0, kNameBytesMax)), size);
  return finding;
}

// Where PTX begins in `bytes`; npos: nowhere.
size_t FindPtx(std::string_view bytes) {
  constexpr std::string_view kVersion = ".version ";
  for (size_t at = bytes.find(kVersion); at != bytes.npos; at = bytes.find(kVersion, at + 1)) {
    if (bytes.substr(at, kTargetWithin).find(".target sm_") != std::string_view::npos) return at;
  }
  return bytes.npos;
}

void InspectData(std::string_view place, std::string_view bytes,
                 std::vector<DetectorFinding>* findings) {
  for (const Header& header : kHeaders) {
    const size_t at = bytes.find(header.bytes);
    if (at == bytes.npos) continue;
    findings->push_back(Notice(place, at, bytes.size(), absl::StrFormat("%s begins", header.what)));
  }
  const size_t ptx = FindPtx(bytes);
  if (ptx != bytes.npos) findings->push_back(Notice(place, ptx, bytes.size(), "PTX begins"));
  if (bytes.size() <= kRandomBytesMax) return;
  for (size_t at = 0; at + kRandomBytesMax <= bytes.size(); at += kRandomBytesMax) {
    const double bits = ByteEntropy(bytes.substr(at, kRandomBytesMax));
    if (bits <= kRandomBits) continue;
    findings->push_back(
        Notice(place, at, bytes.size(), absl::StrFormat("data of %.2f bits a byte", bits)));
    return;
  }
}

class EmbeddedBinaryDetector : public Detector {
 public:
  std::string_view name() const override { return "embedded_binary"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    PtxStatements statements(evidence.ptx);
    PtxStatement statement;
    while (statements.Next(&statement)) {
      if (statement.kind != PtxStatement::Kind::kVariable) continue;
      InspectData(
          absl::StrFormat("variable %s (PTX line %d)",
                          std::string(statement.name.substr(0, kNameBytesMax)), statement.ptx_line),
          statement.data, &findings);
    }
    for (const ElfSection& section : ReadElf(evidence.shared_object).sections) {
      if (!section.is_loaded || section.is_code) continue;
      InspectData(absl::StrFormat("section %s", std::string(section.name.substr(0, kNameBytesMax))),
                  section.bytes, &findings);
    }
    if (findings.size() > kFindingsMax) findings.resize(kFindingsMax);
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeEmbeddedBinaryDetector() {
  return std::make_unique<EmbeddedBinaryDetector>();
}

}  // namespace assay
