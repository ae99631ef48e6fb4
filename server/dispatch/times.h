// Times between Abseil and protobuf, for the dispatcher.
#ifndef ASSAY_SERVER_DISPATCH_TIMES_H_
#define ASSAY_SERVER_DISPATCH_TIMES_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace assay {

inline absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

inline absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

inline google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp out;
  const int64_t seconds = absl::ToUnixSeconds(time);
  out.set_seconds(seconds);
  out.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return out;
}

inline google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration out;
  absl::Duration rest;
  out.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return out;
}

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_TIMES_H_
