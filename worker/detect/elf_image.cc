#include "worker/detect/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace assay {
namespace {

constexpr size_t kSectionsMax = 4096;
constexpr int kVersionsMax = 4096;  // entries looked at
constexpr uint64_t kSymbolsMax = 1 << 20;

std::string_view Part(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size()) return {};
  return bytes.substr(offset, std::min<uint64_t>(size, bytes.size() - offset));
}

// False where the file ends before.
template <typename T>
bool Read(std::string_view bytes, uint64_t offset, T* out) {
  const std::string_view part = Part(bytes, offset, sizeof(T));
  if (part.size() != sizeof(T)) return false;
  std::memcpy(out, part.data(), sizeof(T));
  return true;
}

std::string_view StringAt(std::string_view table, uint64_t offset) {
  const std::string_view rest = Part(table, offset, table.size());
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  ElfImage Run() {
    if (!ReadHeaders()) return {};
    for (const Elf64_Shdr& header : headers_) {
      AddSection(header);
      if (header.sh_type == SHT_DYNAMIC && image_.needed.empty()) ReadDynamic(header);
      if (header.sh_type == SHT_GNU_verneed && versions_.empty()) ReadVersions(header);
      if (header.sh_type == SHT_GNU_versym) version_numbers_ = BytesOf(header);
    }
    for (const Elf64_Shdr& header : headers_) {
      if (header.sh_type != SHT_DYNSYM) continue;
      ReadSymbols(header);
      break;
    }
    return std::move(image_);
  }

 private:
  bool ReadHeaders() {
    Elf64_Ehdr file;
    if (!Read(bytes_, 0, &file) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
        file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_ident[EI_DATA] != ELFDATA2LSB ||
        file.e_shentsize != sizeof(Elf64_Shdr)) {
      return false;
    }
    const size_t count = std::min<size_t>(file.e_shnum, kSectionsMax);
    for (size_t i = 0; i < count; ++i) {
      Elf64_Shdr header;
      if (!Read(bytes_, file.e_shoff + i * sizeof(header), &header)) break;
      headers_.push_back(header);
    }
    if (file.e_shstrndx < headers_.size()) names_ = BytesOf(headers_[file.e_shstrndx]);
    return true;
  }

  std::string_view BytesOf(const Elf64_Shdr& header) const {
    if (header.sh_type == SHT_NOBITS) return {};
    return Part(bytes_, header.sh_offset, header.sh_size);
  }

  std::string_view LinkedStrings(const Elf64_Shdr& header) const {
    return header.sh_link < headers_.size() ? BytesOf(headers_[header.sh_link])
                                            : std::string_view();
  }

  void AddSection(const Elf64_Shdr& header) {
    ElfSection section;
    section.name = StringAt(names_, header.sh_name);
    section.bytes = BytesOf(header);
    section.is_loaded = (header.sh_flags & SHF_ALLOC) != 0;
    section.is_code = (header.sh_flags & SHF_EXECINSTR) != 0;
    // Sections of a sound file do not overlap.
    section_bytes_ += section.bytes.size();
    if (!section.bytes.empty() && section_bytes_ <= bytes_.size()) {
      image_.sections.push_back(section);
    }
  }

  void ReadDynamic(const Elf64_Shdr& header) {
    const std::string_view entries = BytesOf(header);
    const std::string_view strings = LinkedStrings(header);
    Elf64_Dyn entry;
    for (uint64_t at = 0; Read(entries, at, &entry); at += sizeof(entry)) {
      if (entry.d_tag == DT_NULL) return;
      if (entry.d_tag == DT_NEEDED) {
        image_.needed.push_back(StringAt(strings, entry.d_un.d_val));
      }
    }
  }

  void ReadVersions(const Elf64_Shdr& header) {
    const std::string_view entries = BytesOf(header);
    const std::string_view strings = LinkedStrings(header);
    Elf64_Verneed need;
    int looks = 0;
    for (uint64_t at = 0; looks < kVersionsMax && Read(entries, at, &need); at += need.vn_next) {
      Elf64_Vernaux version;
      uint64_t version_at = at + need.vn_aux;
      for (int i = 0;
           i < need.vn_cnt && looks++ < kVersionsMax && Read(entries, version_at, &version); ++i) {
        versions_[version.vna_other & 0x7fff] = StringAt(strings, need.vn_file);
        version_at += version.vna_next;
      }
      if (need.vn_next == 0) return;
      ++looks;
    }
  }

  void ReadSymbols(const Elf64_Shdr& header) {
    const std::string_view symbols = BytesOf(header);
    const std::string_view strings = LinkedStrings(header);
    Elf64_Sym symbol;
    for (uint64_t i = 0; i < kSymbolsMax && Read(symbols, i * sizeof(symbol), &symbol); ++i) {
      const std::string_view name = StringAt(strings, symbol.st_name);
      if (symbol.st_shndx != SHN_UNDEF || name.empty()) continue;
      uint16_t number = 0;
      const bool is_versioned = Read(version_numbers_, i * sizeof(number), &number);
      const auto version = versions_.find(is_versioned ? number & 0x7fff : 0);
      image_.undefined.push_back(
          {name, version == versions_.end() ? std::string_view() : version->second});
    }
  }

  const std::string_view bytes_;
  std::vector<Elf64_Shdr> headers_;
  std::string_view names_;
  size_t section_bytes_ = 0;
  std::string_view version_numbers_;
  std::map<int, std::string_view> versions_;  // libraries by number of a version
  ElfImage image_;
};

}  // namespace

ElfImage ReadElf(std::string_view bytes) { return Reader(bytes).Run(); }

}  // namespace assay
