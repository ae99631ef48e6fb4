// The suite that every implementation of Store is held to. An implementation instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, StoreConformanceTest,
//                            ::testing::Values(StoreFactory{"Mine", [] { ... }}),
//                            StoreFactoryName);
#ifndef ASSAY_STORE_TESTING_CONFORMANCE_H_
#define ASSAY_STORE_TESTING_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "store/store.h"

namespace assay {

// A store under test and whatever it stands on.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  virtual Store& store() = 0;
  // Closes the store and opens it again on the same data. False: it does not survive that.
  virtual bool Reopen() = 0;
};

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<StoreFixture>()> make;
};

inline std::string StoreFactoryName(const ::testing::TestParamInfo<StoreFactory>& info) {
  return info.param.name;
}

class StoreConformanceTest : public ::testing::TestWithParam<StoreFactory> {
 protected:
  // Makes the store, with problem "gelu" in version 1, ADMITTED.
  void SetUp() override;
  Store& store() { return fixture_->store(); }

  std::unique_ptr<StoreFixture> fixture_;
};

}  // namespace assay

#endif  // ASSAY_STORE_TESTING_CONFORMANCE_H_
