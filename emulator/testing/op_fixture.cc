#include "emulator/testing/op_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/ops.h"
#include "emulator/testing/op_text.h"

namespace assay::emulator {
namespace {

constexpr size_t kRegisterBytes = size_t{1} << 16;
constexpr int kFailuresShown = 5;

int BytesOf(char width) {
  switch (width) {
    case 'b':
    case 'h':
      return 2;
    case 'd':
      return 8;
    case 'q':
      return 16;
    default:
      return 4;
  }
}

bool IsOutput(std::string_view name) {
  return std::string_view("xyzw").find(name[2]) != std::string_view::npos;
}
int RoleOf(std::string_view name) {
  return IsOutput(name) ? (name[2] - 'w' + 3) % 4 : name[2] - 'a';
}

}  // namespace

struct OpFixture::FakeWarp : Warp {
  std::vector<std::byte> bytes;
  bool perturb = false;
  uint64_t clock = 0;
  std::mt19937_64 random{7};
};

// The registers of the fixture by name.
class OpFixture::FakeDecoder : public Decoder {
 public:
  explicit FakeDecoder(std::byte* registers) : registers_(registers) {}

  int Index(std::string_view name) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return static_cast<int>(i);
    }
    names_.emplace_back(name);
    offsets_.push_back(Scratch(BytesOf(name[1])));
    return static_cast<int>(names_.size()) - 1;
  }
  uint32_t OffsetOf(std::string_view name) { return offsets_[static_cast<size_t>(Index(name))]; }

  absl::StatusOr<uint32_t> Source(const Operand& operand, Type type) override {
    const int bytes = std::max(2, TypeBytes(type));
    if (operand.kind == Operand::Kind::kInteger) return Constant(operand.bits, bytes);
    if (operand.kind == Operand::Kind::kFloat && operand.single == (bytes == 4)) {
      return Constant(operand.bits, bytes);
    }
    return Register(operand, bytes);
  }
  absl::StatusOr<uint32_t> SourceAnyWidth(const Operand& operand, Type type, int* width) override {
    const int bytes = std::max(2, TypeBytes(type));
    *width = operand.kind == Operand::Kind::kRegister ? WidthOf(operand) : bytes;
    if (*width < bytes) return absl::InvalidArgumentError("a register that is too narrow");
    return Source(operand, *width == 2 ? Type::kB16 : *width == 4 ? Type::kB32 : Type::kB64);
  }
  absl::StatusOr<uint32_t> Destination(const Operand& operand, Type type) override {
    if (operand.kind == Operand::Kind::kSink) return Scratch(16);
    return Register(operand, std::max(2, TypeBytes(type)));
  }
  absl::StatusOr<uint32_t> DestinationAnyWidth(const Operand& operand, Type type,
                                               int* width) override {
    return SourceAnyWidth(operand, type, width);
  }
  absl::StatusOr<uint32_t> Predicate(const Operand& operand, bool* negated) override {
    *negated = operand.negated;
    return PredicateRegister(operand);
  }
  absl::StatusOr<uint32_t> PredicateDestination(const Operand& operand) override {
    if (operand.kind == Operand::Kind::kSink) return Scratch(4);
    return PredicateRegister(operand);
  }
  absl::StatusOr<uint32_t> PairPredicate(const Operand& operand) override {
    return operand.pair < 0 ? kNoRegister : offsets_[static_cast<size_t>(operand.pair)];
  }
  uint32_t Scratch(int bytes_per_lane) override {
    const uint32_t at = next_;
    next_ += static_cast<uint32_t>(bytes_per_lane * kLanes);
    if (next_ > kRegisterBytes) std::abort();
    return at;
  }
  uint32_t Constant(uint64_t bits, int bytes) override {
    const uint32_t at = Scratch(bytes);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(registers_ + at + lane * bytes, &bits, static_cast<size_t>(bytes));
    }
    return at;
  }
  absl::Status Address(const Operand&, uint32_t*, int64_t*, bool*) override {
    return absl::UnimplementedError("addresses");
  }
  uint32_t AddList(const std::vector<uint32_t>& values) override {
    program_.lists.insert(program_.lists.end(), values.begin(), values.end());
    return static_cast<uint32_t>(program_.lists.size() - values.size());
  }
  OpInfo* info() override { return &info_; }
  Program* program() override { return &program_; }

 private:
  int WidthOf(const Operand& operand) const {
    return BytesOf(names_[static_cast<size_t>(operand.reg)][1]);
  }
  bool IsPredicate(const Operand& operand) const {
    return names_[static_cast<size_t>(operand.reg)][1] == 'p';
  }
  absl::StatusOr<uint32_t> Register(const Operand& operand, int bytes) {
    if (operand.kind != Operand::Kind::kRegister || IsPredicate(operand) ||
        WidthOf(operand) != bytes) {
      return absl::InvalidArgumentError(absl::StrCat("no register of ", bytes, " bytes"));
    }
    return offsets_[static_cast<size_t>(operand.reg)];
  }
  absl::StatusOr<uint32_t> PredicateRegister(const Operand& operand) {
    if (operand.kind != Operand::Kind::kRegister || !IsPredicate(operand)) {
      return absl::InvalidArgumentError("no predicate");
    }
    return offsets_[static_cast<size_t>(operand.reg)];
  }

  std::byte* const registers_;
  uint32_t next_ = 0;
  std::vector<std::string> names_;
  std::vector<uint32_t> offsets_;
  OpInfo info_;
  Program program_;
};

OpFixture::OpFixture() : warp_(std::make_unique<FakeWarp>()) {
  warp_->bytes.resize(kRegisterBytes);
  warp_->registers = warp_->bytes.data();
  warp_->live = warp_->active = kAllLanes;
  decoder_ = std::make_unique<FakeDecoder>(warp_->registers);
  for (const auto add : {&AddArithmeticOps, &AddIntegerOps, &AddVideoOps, &AddBitOps,
                         &AddBitFieldOps, &AddCompareOps, &AddSelectOps, &AddMoveOps, &AddFloatOps,
                         &AddApproximateOps, &AddConvertOps}) {
    add(&table_);
  }
}

OpFixture::~OpFixture() = default;

absl::Status OpFixture::Decode(std::string_view text) {
  inputs_.clear();
  outputs_.clear();
  const Instruction instruction = SplitInstruction(text, [this](std::string_view name) {
    std::vector<std::string>& names = IsOutput(name) ? outputs_ : inputs_;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
    return decoder_->Index(name);
  });
  const DecodeFunction decode = table_.Find(instruction.mnemonic);
  if (decode == nullptr) return absl::NotFoundError(absl::StrCat("no ", instruction.mnemonic));
  op_ = Op();
  *decoder_->info() = OpInfo();
  return decode(instruction, decoder_.get(), &op_);
}

void OpFixture::Run(uint32_t mask) { op_.handler(warp_.get(), op_, mask); }

void OpFixture::Set(std::string_view name, int lane, uint64_t value) {
  std::byte* const at = warp_->registers + decoder_->OffsetOf(name);
  if (name[1] == 'p') {
    uint32_t lanes = 0;
    std::memcpy(&lanes, at, sizeof(lanes));
    lanes = (lanes & ~(1u << lane)) | static_cast<uint32_t>(value & 1) << lane;
    std::memcpy(at, &lanes, sizeof(lanes));
    return;
  }
  const int bytes = BytesOf(name[1]);
  std::memcpy(at + lane * bytes, &value, static_cast<size_t>(std::min(bytes, 8)));
}

uint64_t OpFixture::Get(std::string_view name, int lane) const {
  const std::byte* const at = warp_->registers + decoder_->OffsetOf(name);
  uint64_t value = 0;
  if (name[1] == 'p') {
    std::memcpy(&value, at, sizeof(uint32_t));
    return value >> lane & 1;
  }
  const int bytes = BytesOf(name[1]);
  std::memcpy(&value, at + lane * bytes, static_cast<size_t>(std::min(bytes, 8)));
  return value;
}

uint32_t OpFixture::OffsetOf(std::string_view name) const { return decoder_->OffsetOf(name); }
uint32_t OpFixture::carry() const { return PredicateLanes(warp_.get(), decoder_->CarryFlag()); }
void OpFixture::set_carry(uint32_t lanes) {
  PredicateLanes(warp_.get(), decoder_->CarryFlag()) = lanes;
}
const OpInfo& OpFixture::info() const { return *decoder_->info(); }
void OpFixture::set_perturb(bool perturb) { warp_->perturb = perturb; }
void OpFixture::set_clock(uint64_t clock) { warp_->clock = clock; }

bool PerturbApproximations(Warp* warp) { return static_cast<OpFixture::FakeWarp*>(warp)->perturb; }
uint64_t NextRandom(Warp* warp) { return static_cast<OpFixture::FakeWarp*>(warp)->random(); }
uint64_t ClockOf(Warp* warp) { return static_cast<OpFixture::FakeWarp*>(warp)->clock++; }

namespace {

// Compares batches of 32 cases; counts what differs and shows the first few.
class Comparison {
 public:
  Comparison(std::string_view text, OpFixture* fixture) : text_(text), fixture_(fixture) {}

  void Load(const OpInputs* cases) {
    for (const std::string& name : fixture_->inputs()) {
      const int role = RoleOf(name);
      for (int lane = 0; lane < kLanes; ++lane) fixture_->Set(name, lane, cases[lane][role]);
    }
  }
  // Runs with outputs that hold something else before, and looks at every lane.
  void Run(const OpInputs* cases, const OpOutputs* expected, uint32_t mask) {
    Load(cases);
    OpOutputs before[kLanes];
    for (const std::string& name : fixture_->outputs()) {
      for (int lane = 0; lane < kLanes; ++lane) {
        fixture_->Set(name, lane, random_());
        before[lane][RoleOf(name)] = fixture_->Get(name, lane);
      }
    }
    fixture_->Run(mask);
    for (const std::string& name : fixture_->outputs()) {
      const int role = RoleOf(name);
      for (int lane = 0; lane < kLanes; ++lane) {
        const bool active = (mask >> lane & 1) != 0;
        Expect(cases[lane], name, active ? expected[lane][role] : before[lane][role],
               fixture_->Get(name, lane), active ? "" : " (lane outside of the mask)");
      }
    }
  }
  // The destination is the source `input`.
  void RunInPlace(const OpInputs* cases, const OpOutputs* expected, const std::string& input,
                  uint32_t mask) {
    Load(cases);
    Op* const op = fixture_->op();
    const uint32_t kept = op->dst;
    op->dst = fixture_->OffsetOf(input);
    fixture_->Run(mask);
    op->dst = kept;
    const int role = RoleOf(fixture_->outputs()[0]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool active = (mask >> lane & 1) != 0;
      const uint64_t want = active ? expected[lane][role] : cases[lane][RoleOf(input)];
      Expect(cases[lane], input, want, fixture_->Get(input, lane), " (in place)");
    }
  }
  uint32_t RandomMask() {
    const auto mask = static_cast<uint32_t>(random_());
    return mask == 0 ? 1 : mask;
  }
  int64_t failures() const { return failures_; }

 private:
  void Expect(const OpInputs& inputs, const std::string& name, uint64_t want, uint64_t got,
              const char* note) {
    const int bytes = std::min(8, BytesOf(name[1]));
    const uint64_t ones = name[1] == 'p' ? 1 : ~uint64_t{0} >> (64 - 8 * bytes);
    if ((want & ones) == (got & ones)) return;
    if (++failures_ > kFailuresShown) return;
    std::string values;
    for (const std::string& input : fixture_->inputs()) {
      absl::StrAppend(&values, " ", input, "=0x", absl::Hex(inputs[RoleOf(input)]));
    }
    ADD_FAILURE() << text_ << ":" << values << ": " << name << " is 0x" << std::hex << (got & ones)
                  << " instead of 0x" << (want & ones) << note;
  }

  const std::string text_;
  OpFixture* const fixture_;
  std::mt19937_64 random_{11};
  int64_t failures_ = 0;
};

// Sources that the destination may take the place of: those of its width, when it is the only one.
std::vector<std::string> PlacesOf(const OpFixture& fixture) {
  std::vector<std::string> places;
  if (fixture.outputs().size() != 1) return places;
  const char width = fixture.outputs()[0][1];
  if (width == 'p' || width == 'q') return places;
  for (const std::string& name : fixture.inputs()) {
    if (name[1] == width) places.push_back(name);
  }
  return places;
}

}  // namespace

int64_t CheckOp(std::string_view text, const std::vector<OpInputs>& cases,
                const OpReference& reference) {
  OpFixture fixture;
  const absl::Status status = fixture.Decode(text);
  EXPECT_TRUE(status.ok()) << text << ": " << status;
  if (!status.ok()) return 0;
  Comparison comparison(text, &fixture);
  const std::vector<std::string> places = PlacesOf(fixture);
  for (size_t first = 0; first < cases.size(); first += kLanes) {
    OpInputs inputs[kLanes] = {};
    OpOutputs expected[kLanes] = {};
    for (size_t lane = 0; lane < kLanes; ++lane) {
      inputs[lane] = cases[(first + lane) % cases.size()];
      expected[lane] = reference(inputs[lane]);
    }
    comparison.Run(inputs, expected, kAllLanes);
    const size_t batch = first / kLanes;
    if (batch % 3 == 0) comparison.Run(inputs, expected, comparison.RandomMask());
    if (batch % 8 == 1) comparison.Run(inputs, expected, uint32_t{1} << batch % kLanes);
    if (batch % 4 != 2) continue;
    for (const std::string& name : places) {
      comparison.RunInPlace(inputs, expected, name, kAllLanes);
      comparison.RunInPlace(inputs, expected, name, comparison.RandomMask());
    }
  }
  EXPECT_EQ(comparison.failures(), 0) << text;
  return static_cast<int64_t>(cases.size());
}

CaseCount::~CaseCount() { std::printf("%s: %" PRId64 " cases\n", name_.c_str(), cases_); }

absl::Status DecodeOnly(std::string_view text) {
  OpFixture fixture;
  return fixture.Decode(text);
}

}  // namespace assay::emulator
