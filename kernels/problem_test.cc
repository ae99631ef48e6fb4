#include "kernels/problem.h"

#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::ScaleRowsProblem;

TEST(ValidateProblemTest, AcceptsAValidProblem) {
  EXPECT_OK(ValidateProblem(ScaleRowsProblem()));
  v1::Problem short_name = ScaleRowsProblem();
  short_name.set_name("scale_rows");
  EXPECT_OK(ValidateProblem(short_name));
}

struct BadCase {
  const char* message;
  std::function<void(v1::Problem*)> edit;
};

v1::Tensor* TensorNamed(v1::Problem* p, const std::string& name) {
  for (v1::Tensor& tensor : *p->mutable_tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

// Every case breaks one thing; the message names the place.
const BadCase kBadCases[] = {
    {"name", [](auto* p) { p->set_name("problems/Gelu"); }},
    {"name", [](auto* p) { p->set_name(""); }},
    {"reserved", [](auto* p) { p->set_name("int"); }},
    {"name", [](auto* p) { p->set_name("a/../b"); }},
    {"65 bytes", [](auto* p) { p->set_name(std::string(65, 'a')); }},
    {"version", [](auto* p) { p->set_version(0); }},
    {"summary", [](auto* p) { p->set_summary(std::string(limits::kTextBytesMax + 1, 'x')); }},
    {"axes", [](auto* p) { p->clear_axes(); }},
    {"axis 'rows' is declared twice", [](auto* p) { p->add_axes()->set_name("rows"); }},
    {"C identifier", [](auto* p) { p->mutable_axes(0)->set_name("a-b"); }},
    {"C identifier", [](auto* p) { p->mutable_axes(0)->set_name("a__b"); }},
    {"reserved", [](auto* p) { p->mutable_axes(0)->set_name("min"); }},
    {"min <= max", [](auto* p) { p->mutable_axes(0)->set_min(-2); }},
    {"axes: 17",
     [](auto* p) {
       for (int i = 0; i < 15; ++i) p->add_axes();
     }},
    {"another axis or tensor", [](auto* p) { TensorNamed(p, "s")->set_name("cols"); }},
    {"another axis or tensor", [](auto* p) { TensorNamed(p, "s")->set_name("x"); }},
    {"dtype", [](auto* p) { TensorNamed(p, "x")->set_dtype(v1::DATA_TYPE_UNSPECIFIED); }},
    {"dtype", [](auto* p) { TensorNamed(p, "x")->set_dtype(static_cast<v1::DataType>(99)); }},
    {"role", [](auto* p) { TensorNamed(p, "x")->clear_role(); }},
    {"0 dimensions", [](auto* p) { TensorNamed(p, "x")->clear_shape(); }},
    {"'depth'", [](auto* p) { TensorNamed(p, "x")->set_shape(0, "depth"); }},
    {"tensor 'x': shape", [](auto* p) { TensorNamed(p, "x")->set_shape(0, "rows +"); }},
    {"distribution", [](auto* p) { TensorNamed(p, "x")->clear_distribution(); }},
    {"only inputs", [](auto* p) { TensorNamed(p, "y")->set_scalable(true); }},
    {"only outputs", [](auto* p) { TensorNamed(p, "x")->mutable_tolerance(); }},
    {"stddev",
     [](auto* p) {
       TensorNamed(p, "x")->mutable_distribution()->mutable_normal()->set_stddev(-1);
     }},
    {"reaches",
     [](auto* p) {
       TensorNamed(p, "x")->mutable_distribution()->mutable_normal()->set_mean(1e38);
       p->mutable_tensors(1)->mutable_distribution()->mutable_normal()->set_stddev(1e38);
     }},
    {"floating types", [](auto* p) { TensorNamed(p, "s")->set_dtype(v1::I32); }},
    {"low < high",
     [](auto* p) {
       TensorNamed(p, "s")->mutable_distribution()->mutable_uniform()->set_high(0.5);
     }},
    {"uniform_int",
     [](auto* p) {
       TensorNamed(p, "s")->set_dtype(v1::I8);
       TensorNamed(p, "s")->mutable_distribution()->mutable_uniform_int()->set_high(128);
     }},
    {"uniform_int",
     [](auto* p) {
       TensorNamed(p, "s")->mutable_distribution()->mutable_uniform_int()->set_high(1 << 25);
     }},
    {"give one of them",
     [](auto* p) {
       auto* integers = TensorNamed(p, "s")->mutable_distribution()->mutable_uniform_int();
       integers->set_high(3);
       integers->set_high_expression("rows");
     }},
    {"high_expression: ",
     [](auto* p) {
       TensorNamed(p, "s")->mutable_distribution()->mutable_uniform_int()->set_high_expression(
           "depth - 1");
     }},
    {"tensor 's': distribution: uniform_int from 0 to 'rows - 1000' = -",
     [](auto* p) {
       TensorNamed(p, "s")->mutable_distribution()->mutable_uniform_int()->set_high_expression(
           "rows - 1000");
     }},
    {"tensor 's': distribution: uniform_int from 0 to 'rows * 16777217' = ",
     [](auto* p) {
       TensorNamed(p, "s")->mutable_distribution()->mutable_uniform_int()->set_high_expression(
           "rows * 16777217");
     }},
    {"input case 'late': tensor 's': distribution: high_expression: ",
     [](auto* p) {
       v1::InputCase* late = p->add_input_cases();
       late->set_name("late");
       late->add_overrides()->set_tensor("s");
       late->mutable_overrides(0)
           ->mutable_distribution()
           ->mutable_uniform_int()
           ->set_high_expression("1 / (rows - rows)");
     }},
    {"packed_codes2",
     [](auto* p) {
       TensorNamed(p, "s")->mutable_distribution()->mutable_packed_codes2()->set_code_max(2);
     }},
    {"scalable",
     [](auto* p) {
       TensorNamed(p, "x")->set_dtype(v1::I8);
       TensorNamed(p, "x")->mutable_distribution()->mutable_uniform_int()->set_high(1);
     }},
    {"tolerance.kind", [](auto* p) { TensorNamed(p, "y")->mutable_tolerance()->clear_kind(); }},
    {"always BITWISE", [](auto* p) { TensorNamed(p, "y")->set_dtype(v1::I32); }},
    {"element_max", [](auto* p) { TensorNamed(p, "y")->mutable_tolerance()->set_element_max(0); }},
    {"relative_l2_max",
     [](auto* p) { TensorNamed(p, "y")->mutable_tolerance()->set_relative_l2_max(1); }},
    {"an input and an output", [](auto* p) { p->mutable_tensors()->DeleteSubrange(0, 1); }},
    {"constraints", [](auto* p) { p->set_constraints(0, "rows <"); }},
    {"does not hold", [](auto* p) { p->set_constraints(0, "rows < 7"); }},
    {"reference", [](auto* p) { p->set_reference("other.cc"); }},
    {"reference",
     [](auto* p) {
       p->mutable_files(0)->set_path("r.txt");
       p->set_reference("r.txt");
     }},
    {"begin with a dot", [](auto* p) { p->add_files()->set_path("../x.cc"); }},
    {"begin with a dot", [](auto* p) { p->add_files()->set_path("/x.cc"); }},
    {"occurs twice", [](auto* p) { p->add_files()->set_path("reference.cc"); }},
    {"too large",
     [](auto* p) {
       p->mutable_files(0)->set_content(std::string(limits::kSourceBytesMax + 1, ' '));
     }},
    {"NUL", [](auto* p) { p->mutable_files(0)->set_content(std::string("a\nb\0", 4)); }},
    {"transforms[3]: set", [](auto* p) { p->add_transforms(); }},
    {"no dimension 2",
     [](auto* p) {
       p->mutable_transforms(1)->mutable_permutation()->mutable_inputs(0)->set_dimension(2);
     }},
    {"permuted twice",
     [](auto* p) {
       p->mutable_transforms(1)->mutable_permutation()->mutable_inputs(0)->set_dimension(0);
     }},
    {"no input 'y'",
     [](auto* p) {
       p->mutable_transforms(1)->mutable_permutation()->mutable_inputs(0)->set_tensor("y");
     }},
    {"equal sizes",
     [](auto* p) {
       p->mutable_transforms()->DeleteSubrange(1, 1);
       p->mutable_transforms(0)->mutable_permutation()->mutable_inputs(0)->set_dimension(1);
     }},
    {"at least one input",
     [](auto* p) { p->mutable_transforms(1)->mutable_permutation()->clear_inputs(); }},
    {"exponent_max",
     [](auto* p) { p->mutable_transforms(2)->mutable_power_of_two_scale()->set_exponent_max(17); }},
    {"power of 'x'",
     [](auto* p) {
       p->mutable_transforms(2)->mutable_power_of_two_scale()->mutable_inputs(0)->set_power(0);
     }},
    {"may be 32",
     [](auto* p) {
       auto* scale = p->mutable_transforms(2)->mutable_power_of_two_scale();
       scale->set_exponent_max(16);
       scale->mutable_inputs(0)->set_power(3);
     }},
    {"exactly", [](auto* p) { TensorNamed(p, "y")->set_dtype(v1::F16); }},
    {"remove signed",
     [](auto* p) {
       TensorNamed(p, "y")->mutable_tolerance()->set_kind(v1::TolerancePolicy::BITWISE);
     }},
    {"input case", [](auto* p) { p->add_input_cases()->set_name("x3"); }},
    {"override at least one", [](auto* p) { p->add_input_cases()->set_name("ties"); }},
    {"no input 'q'",
     [](auto* p) {
       auto* c = p->add_input_cases();
       c->set_name("ties");
       c->add_overrides()->set_tensor("q");
     }},
    {"work.unit", [](auto* p) { p->mutable_work()->clear_unit(); }},
    {"work.operations", [](auto* p) { p->mutable_work()->clear_operations(); }},
    {"work", [](auto* p) { p->mutable_work()->set_bytes_read("q"); }},
    {"overflow", [](auto* p) { p->mutable_work()->set_operations("rows * 9223372036854775807"); }},
    {"workloads", [](auto* p) { p->clear_workloads(); }},
    {"must be measured", [](auto* p) { p->mutable_workloads(0)->set_verify_only(true); }},
    {"unique", [](auto* p) { p->mutable_workloads(0)->set_name("ragged"); }},
    {"[A-Za-z0-9_.-]", [](auto* p) { p->mutable_workloads(0)->set_name("rows=1"); }},
    {"workload 'small'", [](auto* p) { p->mutable_workloads(0)->mutable_axes()->erase("rows"); }},
    {"baseline",
     [](auto* p) {
       auto* b = p->add_baselines();
       b->set_name("openblas");
       b->set_source("missing.cc");
     }},
    {"baselines", [](auto* p) { p->add_baselines()->set_name("a b"); }},
};

TEST(ValidateProblemTest, RefusesEveryDefectByName) {
  int index = 0;
  for (const BadCase& bad : kBadCases) {
    v1::Problem problem = ScaleRowsProblem();
    bad.edit(&problem);
    EXPECT_THAT(ValidateProblem(problem),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)))
        << "case " << index << ": " << bad.message;
    ++index;
  }
}

TEST(ProblemDigestTest, CoversTheContractOnly) {
  const v1::Problem problem = ScaleRowsProblem();
  const std::string digest = ProblemDigest(problem);
  EXPECT_EQ(digest.size(), 64u);
  v1::Problem same = problem;
  same.set_summary("other words");
  same.set_digest("x");
  same.mutable_create_time()->set_seconds(7);
  same.set_name("scale_rows");
  EXPECT_EQ(ProblemDigest(same), digest);
  v1::Problem tolerance = problem;
  TensorNamed(&tolerance, "y")->mutable_tolerance()->set_element_max(2e-5);
  v1::Problem source = problem;
  source.mutable_files(0)->mutable_content()->append(" ");
  v1::Problem axes = problem;
  (*axes.mutable_workloads(0)->mutable_axes())["rows"] = 5;
  for (const v1::Problem& other : {tolerance, source, axes}) {
    EXPECT_NE(ProblemDigest(other), digest);
  }
}

class LoadProblemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryDirectory::Create("problem");
    ASSERT_THAT(folder, IsOk());
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder).value());
    v1::Problem problem = ScaleRowsProblem();
    Write("reference.cc", problem.files(0).content());
    problem.clear_files();
    problem.set_name("scale_rows");
    text_ = problem.DebugString();
    Write("problem.textproto", text_);
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_OK(WriteFileAtomically(folder_->path() + "/" + name, text));
  }
  absl::Status Load() { return LoadProblemDirectory(folder_->path(), &problem_); }

  std::unique_ptr<TemporaryDirectory> folder_;
  std::string text_;
  v1::Problem problem_;
};

TEST_F(LoadProblemTest, ReadsTheFolder) {
  ASSERT_OK(Load());
  EXPECT_EQ(problem_.name(), "problems/scale_rows");
  ASSERT_EQ(problem_.files_size(), 1);
  EXPECT_EQ(problem_.files(0).path(), "reference.cc");
  EXPECT_EQ(problem_.digest(), ProblemDigest(ScaleRowsProblem()));
}

TEST_F(LoadProblemTest, ErrorsNameFileLineAndColumn) {
  Write("problem.textproto", "name: \"a\"\nversion: 1\n  colour: 3\n");
  EXPECT_THAT(Load(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("problem.textproto:3:9: ")));
  EXPECT_THAT(Load(), HasReason("UNKNOWN_FIELD"));
  Write("problem.textproto", "name: \"a\"\nversion: one\n");
  EXPECT_THAT(Load(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("problem.textproto:2:10: ")));
  EXPECT_THAT(Load(), HasReason("PROBLEM_MALFORMED"));
  Write("problem.textproto", "name: \"a\"\n# \xff\n");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("textproto:2: ")));
  Write("problem.textproto", "name: \"a\" version: 1");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("axes")));
}

TEST_F(LoadProblemTest, RefusesBadFiles) {
  Write("problem.textproto", text_ + "files { path: \"x.cc\" }");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("files")));
  Write("problem.textproto", text_);
  Write("reference.cc", "int a;\n\xc0\x80");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reference.cc:2")));
  std::filesystem::remove(folder_->path() + "/reference.cc");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("reference.cc")));
  EXPECT_THAT(LoadProblemDirectory("/nonexistent", &problem_),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(LoadProblemDirectory("/nonexistent", &problem_), HasReason("PATH_NOT_FOUND"));
}

TEST_F(LoadProblemTest, LinksMustStayInTheFolder) {
  for (const char* name : {"reference.cc", "problem.textproto"}) {
    const std::string path = folder_->path() + "/" + name;
    std::filesystem::rename(path, path + ".old");
    std::filesystem::create_symlink(std::string(name) + ".old", path);
    EXPECT_OK(Load()) << name;
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/etc/hostname", path);
    EXPECT_THAT(Load(), HasReason("PROBLEM_MALFORMED")) << name;
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("is a link that leaves the folder")));
    std::filesystem::rename(path + ".old", path);
  }
}

TEST_F(LoadProblemTest, MessagesQuoteTextOnce) {
  problem_ = ScaleRowsProblem();
  problem_.add_constraints("rows - rows");
  EXPECT_THAT(ValidateProblem(problem_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'rows - rows'")));
}

}  // namespace
}  // namespace assay
