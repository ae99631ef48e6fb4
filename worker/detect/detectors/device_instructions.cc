// Instructions of the built device code that tell where, when or for how long a kernel runs, that
// reach beyond its tensors, or that steer the caches. Honest kernels have uses for all of them: a
// notice only.
#include <algorithm>
#include <array>
#include <set>

#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"
#include "worker/detect/ptx_tally.h"

namespace assay {
namespace {

constexpr std::string_view kClocks = "clock reads";
constexpr std::string_view kPlaces = "reads of where it runs or of how often anything was launched";
constexpr std::string_view kWaits = "timed waits";
constexpr std::string_view kTraps = "traps and breakpoints";
constexpr std::string_view kPrints = "calls that print";
constexpr std::string_view kHeap = "uses of the device's heap, which outlives a call";
constexpr std::string_view kDependents = "uses of dependent launch";
constexpr std::string_view kHints = "cache policies and eviction hints";
constexpr std::string_view kPrefetches = "prefetches and prefetch hints";
constexpr std::string_view kSystem = "atomics, fences and accesses of system scope";
constexpr std::string_view kVolatile = "volatile accesses beyond shared memory";
constexpr std::string_view kAbsolute = "accesses at addresses that are constants of the code";

struct NamedKind {
  std::string_view name;
  std::string_view kind;
};
constexpr NamedKind kRegisters[] = {
    {"%clock", kClocks},          {"%clock_hi", kClocks},      {"%clock64", kClocks},
    {"%globaltimer", kClocks},    {"%smid", kPlaces},          {"%nsmid", kPlaces},
    {"%warpid", kPlaces},         {"%nwarpid", kPlaces},       {"%gridid", kPlaces},
    {"%globaltimer_lo", kClocks}, {"%globaltimer_hi", kClocks}};
constexpr NamedKind kFunctions[] = {{"vprintf", kPrints}, {"malloc", kHeap}, {"free", kHeap}};
constexpr NamedKind kOperations[] = {{"nanosleep", kWaits},
                                     {"trap", kTraps},
                                     {"brkpt", kTraps},
                                     {"discard", kHints},
                                     {"griddepcontrol", kDependents},
                                     {"createpolicy", kHints},
                                     {"applypriority", kHints},
                                     {"prefetch", kPrefetches},
                                     {"prefetchu", kPrefetches}};
// Of opcodes. The parts that begin with "::" stand behind L1 or L2.
constexpr NamedKind kParts[] = {{"::evict_", kHints},          {"::no_allocate", kHints},
                                {"::cache_hint", kHints},      {"::64B", kPrefetches},
                                {"::128B", kPrefetches},       {"::256B", kPrefetches},
                                {"bulk.prefetch", kPrefetches}};
constexpr std::string_view kMemoryOperations[] = {"ld",    "ldu",    "st", "atom",    "red",
                                                  "fence", "membar", "cp", "prefetch"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Of "ld.global.f32": "ld".
std::string_view Mnemonic(const PtxStatement& statement) {
  const std::string_view opcode = statement.opcode;
  return opcode.substr(0, std::min(opcode.find('.'), opcode.size()));
}

bool IsMemoryOperation(std::string_view mnemonic) {
  return std::find(std::begin(kMemoryOperations), std::end(kMemoryOperations), mnemonic) !=
         std::end(kMemoryOperations);
}

// Whether it stays inside of a block or a kernel's arguments.
bool IsInner(const PtxStatement& statement) {
  for (const std::string_view space : {"shared", "shared::cta", "shared::cluster", "local", "param",
                                       "param::entry", "param::func", "const"}) {
    if (statement.Has(space)) return true;
  }
  return false;
}

// Follows constants from register to register, as far as addresses are made of nothing else.
class ConstantAddresses {
 public:
  // Whether `statement` accesses such an address.
  bool Take(const PtxStatement& statement) {
    if (statement.name != function_) registers_.clear();
    function_ = statement.name;
    const std::string_view mnemonic = Mnemonic(statement);
    const std::vector<std::string_view>& words = statement.operands;
    if (IsMemoryOperation(mnemonic)) {
      const bool found =
          !IsInner(statement) && std::any_of(words.begin(), words.end(), [&](auto& word) {
            return &word != &words.front() && *(&word - 1) == "[" && IsConstant(word);
          });
      // What a load gives is no constant.
      if (!words.empty()) registers_.erase(words.front());
      return found;
    }
    if (words.size() < 3 || words[1] != ",") return false;
    const bool moves = mnemonic == "mov" || mnemonic == "cvta" || mnemonic == "add";
    const bool is_wide = statement.Has("u64") || statement.Has("b64") || statement.Has("s64");
    const bool all_constant =
        IsConstant(words[2]) && (mnemonic != "add" || (words.size() > 4 && IsConstant(words[4])));
    if (moves && is_wide && all_constant) {
      registers_.insert(words[0]);
    } else {
      registers_.erase(words[0]);
    }
    return false;
  }

 private:
  bool IsConstant(std::string_view word) const {
    return (IsDigit(word.front()) && word != "0") || registers_.count(word) != 0;
  }

  std::string_view function_;
  std::set<std::string_view> registers_;
};

void TakeOperands(const PtxStatement& statement, PtxTally* tally) {
  for (const std::string_view word : statement.operands) {
    if (word.front() == '%') {
      for (const NamedKind& known : kRegisters) {
        if (word == known.name) tally->Add(known.kind, word, statement);
      }
    } else if (Mnemonic(statement) == "call") {
      for (const NamedKind& known : kFunctions) {
        if (word == known.name) tally->Add(known.kind, word, statement);
      }
    }
  }
}

void TakeOpcode(const PtxStatement& statement, PtxTally* tally) {
  const std::string_view opcode = statement.opcode;
  const std::string_view mnemonic = Mnemonic(statement);
  for (const NamedKind& known : kOperations) {
    if (mnemonic == known.name) tally->Add(known.kind, opcode, statement);
  }
  for (const NamedKind& known : kParts) {
    if (opcode.find(known.name) != opcode.npos) tally->Add(known.kind, opcode, statement);
  }
  if (!IsMemoryOperation(mnemonic)) return;
  if (statement.Has("sys")) tally->Add(kSystem, opcode, statement);
  if ((statement.Has("volatile") || statement.Has("mmio")) && !IsInner(statement)) {
    tally->Add(kVolatile, opcode, statement);
  }
}

class DeviceInstructionsDetector : public Detector {
 public:
  std::string_view name() const override { return "device_instructions"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    PtxStatements statements(evidence.ptx);
    PtxStatement statement;
    PtxTally tally;
    ConstantAddresses addresses;
    while (statements.Next(&statement)) {
      if (statement.kind != PtxStatement::Kind::kInstruction) continue;
      TakeOperands(statement, &tally);
      TakeOpcode(statement, &tally);
      if (addresses.Take(statement)) tally.Add(kAbsolute, statement.opcode, statement);
    }
    return tally.Notices(statements.files());
  }
};

}  // namespace

std::unique_ptr<Detector> MakeDeviceInstructionsDetector() {
  return std::make_unique<DeviceInstructionsDetector>();
}

}  // namespace assay
