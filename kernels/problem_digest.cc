#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <string>

#include "assay/v1/problem.pb.h"
#include "base/digest.h"
#include "kernels/problem.h"

namespace assay {

std::string ProblemDigest(const v1::Problem& problem) {
  v1::Problem contract = problem;
  contract.set_name(ProblemId(problem.name()));
  contract.clear_summary();
  contract.clear_digest();
  contract.clear_create_time();
  contract.clear_audit();
  std::sort(contract.mutable_files()->begin(), contract.mutable_files()->end(),
            [](const v1::SourceFile& a, const v1::SourceFile& b) { return a.path() < b.path(); });
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in the order of their keys
    contract.SerializeToCodedStream(&coded);
  }
  return DigestBuilder().Add("assay.problem.v1").Add(bytes).Finish();
}

}  // namespace assay
