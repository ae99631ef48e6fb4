// A matcher for protocol buffers, for tests of stores.
#ifndef ASSAY_STORE_TESTING_PROTO_MATCHER_H_
#define ASSAY_STORE_TESTING_PROTO_MATCHER_H_

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"

namespace assay::testing {

// Equal field by field; says where they differ.
MATCHER_P(EqualsProto, expected, "") {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  const bool equal = differencer.Compare(expected, arg);
  if (!equal) *result_listener << difference;
  return equal;
}

}  // namespace assay::testing

#endif  // ASSAY_STORE_TESTING_PROTO_MATCHER_H_
