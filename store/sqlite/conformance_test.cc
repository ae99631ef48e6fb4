#include "store/testing/conformance.h"

#include "base/file.h"
#include "store/sqlite/sqlite_store.h"
#include "store/testing/fake_store.h"

namespace assay {
namespace {

class SqliteFixture : public StoreFixture {
 public:
  explicit SqliteFixture(TemporaryDirectory directory) : directory_(std::move(directory)) {
    Open();
  }
  Store& store() override { return *store_; }
  bool Reopen() override {
    store_.reset();
    Open();
    return true;
  }

 private:
  void Open() {
    auto store = OpenSqliteStore({.directory = directory_.path() + "/data", .reader_count = 2});
    if (!store.ok()) ADD_FAILURE() << store.status();
    store_ = *std::move(store);
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

class FakeFixture : public StoreFixture {
 public:
  Store& store() override { return store_; }
  bool Reopen() override { return false; }

 private:
  FakeStore store_;
};

std::unique_ptr<StoreFixture> MakeSqlite() {
  auto directory = TemporaryDirectory::Create("assay-store");
  if (!directory.ok()) return nullptr;
  return std::make_unique<SqliteFixture>(*std::move(directory));
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreConformanceTest,
    ::testing::Values(StoreFactory{"Sqlite", MakeSqlite},
                      StoreFactory{"Fake", [] { return std::make_unique<FakeFixture>(); }}),
    StoreFactoryName);

}  // namespace
}  // namespace assay
