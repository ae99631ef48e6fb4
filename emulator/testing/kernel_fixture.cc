#include "emulator/testing/kernel_fixture.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace assay::emulator {

void KernelArguments::Add(const void* value, size_t bytes) {
  const size_t offset = (bytes_.size() + bytes - 1) / bytes * bytes;
  bytes_.resize(offset + bytes);
  std::memcpy(bytes_.data() + offset, value, bytes);
}

KernelFixture::KernelFixture(std::string_view ptx, uint64_t device_bytes) {
  DeviceMemory::Options options;
  options.bytes = device_bytes;
  auto memory = DeviceMemory::Create(options);
  EXPECT_TRUE(memory.ok()) << memory.status();
  if (!memory.ok()) return;
  memory_ = *std::move(memory);
  auto module = LoadedModule::Load(ptx, memory_.get(), 80);
  load_status_ = module.status();
  if (module.ok()) module_ = *std::move(module);
}

uint64_t KernelFixture::PutBytes(const std::string& name, const void* values, size_t bytes) {
  const uint64_t address = Reserve(name, bytes);
  const absl::StatusOr<std::byte*> host = memory_->Range(address, bytes);
  EXPECT_TRUE(host.ok()) << host.status();
  if (!host.ok()) return 0;
  std::memcpy(*host, values, bytes);
  const absl::Status marked = memory_->SetInitialized(address, bytes, true);
  EXPECT_TRUE(marked.ok()) << marked;
  return address;
}

uint64_t KernelFixture::Reserve(const std::string& name, uint64_t bytes) {
  const absl::StatusOr<uint64_t> address = memory_->Allocate(bytes, name);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.value_or(0);
}

void KernelFixture::CopyOut(uint64_t address, void* to, size_t bytes) {
  const absl::StatusOr<std::byte*> host = memory_->Range(address, bytes);
  EXPECT_TRUE(host.ok()) << host.status();
  if (host.ok()) std::memcpy(to, *host, bytes);
}

absl::StatusOr<LaunchResult> KernelFixture::TryRun(std::string_view kernel,
                                                   const KernelArguments& arguments,
                                                   const LaunchOptions& options) {
  if (module_ == nullptr) return load_status_;
  const absl::StatusOr<const Program*> program = module_->Kernel(kernel);
  if (!program.ok()) return program.status();
  return Launch(**program, arguments.bytes(), options, memory_.get());
}

LaunchResult KernelFixture::Run(std::string_view kernel, const KernelArguments& arguments,
                                const LaunchOptions& options) {
  absl::StatusOr<LaunchResult> result = TryRun(kernel, arguments, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : LaunchResult();
}

LaunchOptions GridOf(uint32_t blocks, uint32_t threads_per_block, uint64_t seed) {
  LaunchOptions options;
  options.grid = {blocks, 1, 1};
  options.block = {threads_per_block, 1, 1};
  options.seed = seed;
  options.instructions_max = 10'000'000;
  return options;
}

std::string Describe(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) {
    absl::StrAppend(&text, FaultName(fault.kind), " at PTX line ", fault.location.ptx_line, ", ",
                    fault.opcode, ", block (", fault.block.x, ", ", fault.block.y, ", ",
                    fault.block.z, "), thread (", fault.thread.x, ", ", fault.thread.y, ", ",
                    fault.thread.z, "): ", fault.message, "\n");
  }
  return text.empty() ? "no fault\n" : text;
}

}  // namespace assay::emulator
