// A real problem and candidate for tests of admission and of the services.
#ifndef ASSAY_SERVER_SERVICES_TEST_PROBLEM_H_
#define ASSAY_SERVER_SERVICES_TEST_PROBLEM_H_

#include <string>

#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"

namespace assay {

// c = 2 a over n elements, with workloads "small" and "large".
inline v1::Problem TwiceProblem(const std::string& id = "twice", int version = 1) {
  v1::Problem problem;
  problem.set_name("problems/" + id);
  problem.set_version(version);
  problem.set_summary("c = 2 a");
  problem.set_arithmetic("f32");
  problem.add_axes()->set_name("n");
  v1::Tensor* input = problem.add_tensors();
  input->set_name("a");
  input->set_dtype(v1::F32);
  input->set_role(v1::Tensor::INPUT);
  input->add_shape("n");
  input->mutable_distribution()->mutable_normal()->set_stddev(1);
  v1::Tensor* output = problem.add_tensors();
  output->set_name("c");
  output->set_dtype(v1::F32);
  output->set_role(v1::Tensor::OUTPUT);
  output->add_shape("n");
  output->mutable_tolerance()->set_kind(v1::TolerancePolicy::SCALED);
  output->mutable_tolerance()->set_relative_l2_max(1e-6);
  output->mutable_tolerance()->set_element_max(1e-6);
  problem.set_reference("reference.cc");
  v1::SourceFile* file = problem.add_files();
  file->set_path("reference.cc");
  file->set_content("extern \"C\" void " + id +
                    "_reference(const float* a, double* c, int64_t n) {\n"
                    "  for (int64_t i = 0; i < n; ++i) c[i] = 2.0 * a[i];\n}\n");
  problem.mutable_work()->set_unit(v1::WorkModel::FLOP_F32);
  problem.mutable_work()->set_operations("n");
  for (const auto& [name, n] : {std::pair("small", 1024), {"large", 65536}}) {
    v1::Workload* workload = problem.add_workloads();
    workload->set_name(name);
    (*workload->mutable_axes())["n"] = n;
  }
  return problem;
}

inline v1::Candidate TwiceCandidate(const std::string& id = "twice", const std::string& body = "") {
  v1::Candidate candidate;
  candidate.mutable_spec()->set_problem(id);
  candidate.mutable_spec()->set_language(v1::CPP);
  candidate.mutable_spec()->set_label("plain");
  v1::SourceFile* file = candidate.add_files();
  file->set_path("kernel.cc");
  file->set_content("#include <cstdint>\nextern \"C\" void " + id +
                    "(const float* a, float* c, int64_t n) {\n"
                    "  for (int64_t i = 0; i < n; ++i) c[i] = 2 * a[i];\n}\n" +
                    body);
  return candidate;
}

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_TEST_PROBLEM_H_
