#include "kernels/candidate.h"

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadCandidateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryDirectory::Create("candidate");
    ASSERT_THAT(folder, IsOk());
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder).value());
    std::filesystem::create_directory(Path("fast"));
  }
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    EXPECT_OK(WriteFileAtomically(Path(name), text));
    return Path(name);
  }
  absl::Status Load(const std::string& name, const std::string& problem = "") {
    return LoadCandidate(Path(name), problem, &candidate_);
  }
  std::vector<std::string> FilePaths() const {
    std::vector<std::string> out;
    for (const auto& file : candidate_.files()) out.push_back(file.path());
    return out;
  }

  std::unique_ptr<TemporaryDirectory> folder_;
  v1::Candidate candidate_;
};

TEST_F(LoadCandidateTest, FolderTakesSourcesAndHeaders) {
  Write("fast/candidate.textproto", "problem: \"problems/gelu\" language: CPP");
  Write("fast/b.cc", "int b;");
  Write("fast/a.cpp", "int a;");
  Write("fast/sub/c.h", "int c;");
  Write("fast/kernel.cu", "other language");
  Write("fast/README.md", "\xff not read");
  Write("fast/.hidden.cc", "not read");
  Write("fast/.git/x.cc", "not read");
  ASSERT_OK(Load("fast"));
  EXPECT_EQ(candidate_.spec().problem(), "gelu");
  EXPECT_EQ(candidate_.spec().label(), "fast");
  EXPECT_THAT(FilePaths(), ElementsAre("a.cpp", "b.cc", "sub/c.h"));
  EXPECT_THAT(CandidateSources(candidate_), ElementsAre("a.cpp", "b.cc"));
}

TEST_F(LoadCandidateTest, NamedSourcesKeepTheirOrder) {
  Write("fast/candidate.textproto",
        "problem: \"gelu\" language: CPP sources: \"z.cc\" sources: \"sub/a.cc\" label: \"l\"");
  Write("fast/z.cc", "");
  Write("fast/sub/a.cc", "");
  Write("fast/unused.cc", "");
  ASSERT_OK(Load("fast", "problems/gelu"));
  EXPECT_THAT(CandidateSources(candidate_), ElementsAre("z.cc", "sub/a.cc"));
  EXPECT_EQ(candidate_.files_size(), 2);
  EXPECT_EQ(candidate_.spec().label(), "l");
}

TEST_F(LoadCandidateTest, FolderErrors) {
  EXPECT_THAT(Load("missing"), HasReason("PATH_NOT_FOUND"));
  EXPECT_THAT(Load("missing"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED"));  // no candidate.textproto

  Write("fast/candidate.textproto", "problem: \"gelu\"\nlanguage: CPP\n");
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED"));  // no source
  Write("fast/a.cc", "int a;\n");
  EXPECT_OK(Load("fast"));
  EXPECT_THAT(Load("fast", "softmax"), HasReason("PROBLEM_MISMATCH"));

  Write("fast/candidate.textproto", "problem: \"gelu\"\nlanguage: CPP\n  speed: 9\n");
  EXPECT_THAT(Load("fast"), HasReason("UNKNOWN_FIELD"));
  // The column is that of the token after the field's name.
  EXPECT_THAT(Load("fast"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("candidate.textproto:3:8: ")));
  Write("fast/candidate.textproto", "problem: \"gelu\"\nlanguage: RUST\n");
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED"));
  Write("fast/candidate.textproto", "language: CPP\n");
  EXPECT_THAT(Load("fast"), HasReason("PROBLEM_MISSING"));
  EXPECT_OK(Load("fast", "gelu"));

  Write("fast/candidate.textproto", "problem: \"gelu\" language: CPP sources: \"no.cc\"");
  EXPECT_THAT(Load("fast"), HasReason("PATH_NOT_FOUND"));
  for (const char* path : {"../a.cc", "/etc/passwd", "./a.cc", "sub//a.cc", "a b.cc"}) {
    Write("fast/candidate.textproto",
          absl::StrCat("problem: \"gelu\" language: CPP sources: \"", path, "\""));
    EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED")) << path;
  }
}

TEST_F(LoadCandidateTest, LimitsWhileReading) {
  Write("fast/candidate.textproto", "problem: \"gelu\" language: CPP");
  Write("fast/a.cc", std::string(limits::kSourceBytesMax, ' '));
  EXPECT_OK(Load("fast"));
  Write("fast/a.cc", std::string(limits::kSourceBytesMax + 1, ' '));
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_TOO_LARGE"));
  for (const char* name : {"a.cc", "b.cc", "c.cc", "d.cc", "e.cc"}) {
    Write(absl::StrCat("fast/", name), std::string(limits::kSourceBytesMax, ' '));
  }
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_TOO_LARGE"));
  for (const char* name : {"a.cc", "b.cc", "c.cc", "d.cc", "e.cc"}) {
    Write(absl::StrCat("fast/", name), "");
  }
  for (size_t i = 5; i < limits::kCandidateFilesMax; ++i)
    Write(absl::StrCat("fast/h", i, ".h"), "");
  EXPECT_OK(Load("fast"));
  Write("fast/one_more.h", "");
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_TOO_LARGE"));
}

TEST_F(LoadCandidateTest, RefusesBadTextAndOddFiles) {
  Write("fast/candidate.textproto", "problem: \"gelu\" language: CPP");
  for (const std::string& bad :
       {std::string("int a;\n\xff"), std::string("int a;\n\0", 8), std::string("\n\xed\xa0\x80"),
        std::string("\n\xc1\xbf"), std::string("\n\xf4\x90\x80\x80"), std::string("\n\xe2\x82")}) {
    Write("fast/a.cc", bad);
    EXPECT_THAT(Load("fast"), HasReason("SOURCE_NOT_UTF8"));
    EXPECT_THAT(Load("fast"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.cc:2")));
  }
  Write("fast/a.cc", "// \xe2\x82\xac \xf0\x9f\x98\x80 \xc3\xa9\n");
  EXPECT_OK(Load("fast"));
  ASSERT_EQ(mkfifo(Path("fast/pipe.cc").c_str(), 0600), 0);
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED"));
}

TEST_F(LoadCandidateTest, LinksMustStayInTheFolder) {
  Write("fast/candidate.textproto", "problem: \"gelu\" language: CPP");
  Write("fast/a.cc", "int a;");
  Write("outside.cc", "int secret;");
  Write("fastidious/b.cc", "int sibling;");
  std::filesystem::create_symlink("a.cc", Path("fast/b.cc"));
  ASSERT_OK(Load("fast"));
  EXPECT_THAT(FilePaths(), ElementsAre("a.cc", "b.cc"));
  for (const char* target : {"../outside.cc", "/etc/hostname", "../fastidious/b.cc"}) {
    std::filesystem::remove(Path("fast/c.cc"));
    std::filesystem::create_symlink(target, Path("fast/c.cc"));
    EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED")) << target;
  }
  std::filesystem::remove(Path("fast/c.cc"));
  std::filesystem::create_symlink("c.cc", Path("fast/c.cc"));  // a loop
  EXPECT_FALSE(Load("fast").ok());
  std::filesystem::remove(Path("fast/c.cc"));
  // A linked folder is not entered, but named sources in it are checked.
  std::filesystem::create_directory_symlink("../fastidious", Path("fast/linked"));
  EXPECT_OK(Load("fast"));
  Write("fast/candidate.textproto", "problem: \"gelu\" language: CPP sources: \"linked/b.cc\"");
  EXPECT_THAT(Load("fast"), HasReason("CANDIDATE_MALFORMED"));
  // So is the specification, whose text an error message would show.
  std::filesystem::remove(Path("fast/candidate.textproto"));
  std::filesystem::create_symlink("/etc/hostname", Path("fast/candidate.textproto"));
  EXPECT_THAT(Load("fast"), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("is a link that leaves the folder")));
}

TEST_F(LoadCandidateTest, ASingleFileIsNoLinkToAnotherFolder) {
  Write("fast/a.cc", "int a;");
  Write("outside.cc", "int secret;");
  std::filesystem::create_symlink("a.cc", Path("fast/b.cc"));
  EXPECT_OK(Load("fast/b.cc", "gelu"));
  std::filesystem::create_symlink("../outside.cc", Path("fast/c.cc"));
  EXPECT_THAT(Load("fast/c.cc", "gelu"), HasReason("CANDIDATE_MALFORMED"));
  EXPECT_THAT(Load("fast/c.cc", "gelu"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("is a link that leaves the folder")));
  ASSERT_EQ(mkfifo(Path("fast/pipe.cc").c_str(), 0600), 0);
  EXPECT_THAT(Load("fast/pipe.cc", "gelu"), HasReason("CANDIDATE_MALFORMED"));
}

constexpr char kCudaSource[] = R"src(
/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
parameters { name: "BLOCK" values: 128 values: 256 }
constraints: "BLOCK <= 1024"
plan {
  workspaces { name: "scratch" bytes: "4 * ceil_div(n, BLOCK)" }
  launches {
    kernel: "vector_add"
    grid: "ceil_div(n, BLOCK)"          # one to three expressions
    block: "BLOCK"
    shared_bytes: "0"
    args: "a" args: "b" args: "c" args: "n"
  }
}
*/
extern "C" __global__ void vector_add() {}
)src";

TEST_F(LoadCandidateTest, SingleFileWithComment) {
  Write("add_v2.cu", kCudaSource);
  ASSERT_OK(Load("add_v2.cu"));
  EXPECT_EQ(candidate_.spec().language(), v1::CUDA_CPP);
  EXPECT_EQ(candidate_.spec().label(), "add_v2");
  EXPECT_EQ(candidate_.spec().plan().launches(0).args_size(), 4);
  EXPECT_THAT(CandidateSources(candidate_), ElementsAre("add_v2.cu"));
  EXPECT_EQ(candidate_.files(0).content(), kCudaSource);
  EXPECT_THAT(Load("add_v2.cu", "gelu"), HasReason("PROBLEM_MISMATCH"));
}

TEST_F(LoadCandidateTest, SingleFileErrors) {
  Write("plain.cc", "int f();");
  EXPECT_OK(Load("plain.cc", "gelu"));
  EXPECT_EQ(candidate_.spec().language(), v1::CPP);
  EXPECT_THAT(Load("plain.cc"), HasReason("PROBLEM_MISSING"));
  Write("plain.cu", "__global__ void f();");
  EXPECT_THAT(Load("plain.cu", "gelu"), HasReason("CANDIDATE_MALFORMED"));
  Write("notes.txt", "hello");
  EXPECT_THAT(Load("notes.txt", "gelu"), HasReason("CANDIDATE_MALFORMED"));
  Write("open.cc", "/* assay-candidate problem: \"gelu\"");
  EXPECT_THAT(Load("open.cc", "gelu"), HasReason("CANDIDATE_MALFORMED"));
  Write("language.cc", "/* assay-candidate problem: \"gelu\" language: PTX */");
  EXPECT_THAT(Load("language.cc"), HasReason("CANDIDATE_MALFORMED"));
  Write("sources.cc", "/* assay-candidate problem: \"gelu\" sources: \"b.cc\" */");
  EXPECT_THAT(Load("sources.cc"), HasReason("CANDIDATE_MALFORMED"));
  Write("odd name!.cc", "/* assay-candidate\nproblem: \"gelu\" */");
  ASSERT_OK(Load("odd name!.cc"));
  EXPECT_THAT(FilePaths(), ElementsAre("odd_name_.cc"));
  // A later comment is no candidate comment.
  Write("later.cc", "int a;\n/* assay-candidate problem: \"softmax\" */");
  EXPECT_OK(Load("later.cc", "gelu"));

  Write("field.cc", "\n\n/* assay-candidate\nproblem: \"gelu\"\n  fast: true\n*/");
  EXPECT_THAT(Load("field.cc"), HasReason("UNKNOWN_FIELD"));
  EXPECT_THAT(Load("field.cc"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("field.cc:5:7: ")));
  Write("first.cc", "/* assay-candidate x: 1 */");
  EXPECT_THAT(Load("first.cc"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("first.cc:1:21: ")));
}

v1::Candidate Valid() {
  v1::Candidate out;
  v1::CandidateSpec* spec = out.mutable_spec();
  spec->set_problem("vector_add");
  spec->set_language(v1::CUDA_CPP);
  auto* parameter = spec->add_parameters();
  parameter->set_name("BLOCK");
  parameter->add_values(128);
  parameter->add_values(256);
  spec->add_constraints("BLOCK <= 1024");
  auto* workspace = spec->mutable_plan()->add_workspaces();
  workspace->set_name("scratch");
  workspace->set_bytes("4 * n");
  auto* launch = spec->mutable_plan()->add_launches();
  launch->set_kernel("vector_add");
  launch->add_grid("ceil_div(n, BLOCK)");
  launch->add_block("BLOCK");
  launch->add_args("scratch");
  launch->add_args("n + 1");
  spec->add_compile_options("-O3");
  auto* file = out.add_files();
  file->set_path("a.cu");
  file->set_content("int a;");
  return out;
}

TEST(ValidateCandidateTest, RefusesEveryDefect) {
  ASSERT_OK(ValidateCandidate(Valid()));
  const struct {
    const char* reason;
    const char* message;
    std::function<void(v1::Candidate*)> edit;
  } cases[] = {
      {"PROBLEM_MISSING", "problem", [](auto* c) { c->mutable_spec()->clear_problem(); }},
      {"CANDIDATE_MALFORMED", "problem", [](auto* c) { c->mutable_spec()->set_problem("A b"); }},
      {"CANDIDATE_MALFORMED", "language", [](auto* c) { c->mutable_spec()->clear_language(); }},
      {"CANDIDATE_MALFORMED", "language",
       [](auto* c) { c->mutable_spec()->set_language(static_cast<v1::Language>(77)); }},
      {"CANDIDATE_MALFORMED", "label", [](auto* c) { c->mutable_spec()->set_label("<script>"); }},
      {"CANDIDATE_MALFORMED", "origin.model",
       [](auto* c) { c->mutable_spec()->mutable_origin()->set_model(std::string(9000, 'x')); }},
      {"CANDIDATE_MALFORMED", "declared twice",
       [](auto* c) { *c->mutable_spec()->add_parameters() = c->spec().parameters(0); }},
      {"CANDIDATE_MALFORMED", "parameter",
       [](auto* c) { c->mutable_spec()->mutable_parameters(0)->set_name("A B"); }},
      {"CANDIDATE_MALFORMED", "listed twice",
       [](auto* c) { c->mutable_spec()->mutable_parameters(0)->add_values(128); }},
      {"CANDIDATE_MALFORMED", "values",
       [](auto* c) { c->mutable_spec()->mutable_parameters(0)->clear_values(); }},
      {"CANDIDATE_MALFORMED", "constraints",
       [](auto* c) { c->mutable_spec()->set_constraints(0, "BLOCK <"); }},
      {"CANDIDATE_MALFORMED", "not a parameter",
       [](auto* c) { c->mutable_spec()->set_constraints(0, "n < 5"); }},
      {"CANDIDATE_MALFORMED", "plan", [](auto* c) { c->mutable_spec()->clear_plan(); }},
      {"CANDIDATE_MALFORMED", "no plan",
       [](auto* c) {
         c->mutable_spec()->set_language(v1::CPP);
         c->mutable_files(0)->set_path("a.cc");
       }},
      {"CANDIDATE_MALFORMED", "has this name",
       [](auto* c) {
         c->mutable_spec()->mutable_plan()->mutable_workspaces(0)->set_name("BLOCK");
       }},
      {"CANDIDATE_MALFORMED", "kernel",
       [](auto* c) { c->mutable_spec()->mutable_plan()->mutable_launches(0)->set_kernel("a;b"); }},
      {"CANDIDATE_MALFORMED", "grid",
       [](auto* c) { c->mutable_spec()->mutable_plan()->mutable_launches(0)->clear_grid(); }},
      {"CANDIDATE_MALFORMED", "block",
       [](auto* c) {
         for (int i = 0; i < 3; ++i) {
           c->mutable_spec()->mutable_plan()->mutable_launches(0)->add_block("1");
         }
       }},
      {"CANDIDATE_MALFORMED", "launches[0]",
       [](auto* c) { c->mutable_spec()->mutable_plan()->mutable_launches(0)->set_args(0, "a b"); }},
      {"CANDIDATE_MALFORMED",
       "launches[0].args[1]: expression 1e-5: column 1: whole numbers only, but found 1e-5; float "
       "parameters cannot be passed to a kernel yet",
       [](auto* c) {
         c->mutable_spec()->mutable_plan()->mutable_launches(0)->set_args(1, "1e-5");
       }},
      {"CANDIDATE_MALFORMED", "float parameters cannot be passed to a kernel yet",
       [](auto* c) {
         c->mutable_spec()->mutable_plan()->mutable_launches(0)->set_args(1, "-0.5");
       }},
      {"CANDIDATE_MALFORMED", "begin with '-'",
       [](auto* c) { c->mutable_spec()->set_compile_options(0, "O3"); }},
      {"CANDIDATE_MALFORMED", "compile_options",
       [](auto* c) { c->mutable_spec()->set_compile_options(0, "-D A=1"); }},
      {"CANDIDATE_MALFORMED", "compile_options",
       [](auto* c) { c->mutable_spec()->set_compile_options(0, "-" + std::string(300, 'x')); }},
      {"CANDIDATE_MALFORMED", "compile_options: 33",
       [](auto* c) {
         for (int i = 0; i < 32; ++i) c->mutable_spec()->add_compile_options("-g");
       }},
      {"CANDIDATE_MALFORMED", "no source", [](auto* c) { c->clear_files(); }},
      {"CANDIDATE_MALFORMED", "not among", [](auto* c) { c->mutable_spec()->add_sources("b.cu"); }},
      {"CANDIDATE_MALFORMED", "not a source",
       [](auto* c) {
         c->mutable_files(0)->set_path("a.h");
         c->mutable_spec()->add_sources("a.h");
       }},
      {"CANDIDATE_MALFORMED", "files",
       [](auto* c) { c->mutable_files(0)->set_path("../../etc/a.cu"); }},
      {"CANDIDATE_MALFORMED", "occurs twice", [](auto* c) { *c->add_files() = c->files(0); }},
      {"SOURCE_NOT_UTF8", "a.cu:1",
       [](auto* c) { c->mutable_files(0)->set_content(std::string("a\0b", 3)); }},
      {"CANDIDATE_TOO_LARGE", "a.cu",
       [](auto* c) {
         c->mutable_files(0)->set_content(std::string(limits::kSourceBytesMax + 1, ' '));
       }},
      {"CANDIDATE_TOO_LARGE", "65 files",
       [](auto* c) {
         for (int i = 0; i < 64; ++i) c->add_files()->set_path(absl::StrCat("h", i, ".h"));
       }},
  };
  int index = 0;
  for (const auto& c : cases) {
    v1::Candidate candidate = Valid();
    c.edit(&candidate);
    const absl::Status status = ValidateCandidate(candidate);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << "case " << index;
    EXPECT_THAT(status, HasReason(c.reason)) << "case " << index;
    ++index;
  }
}

TEST(CheckCandidateAgainstProblemTest, Names) {
  v1::Problem problem = testing::ProblemFromText(R"pb(
    name: "problems/vector_add"
    axes { name: "n" }
    tensors { name: "a" }
    tensors { name: "b" }
    tensors { name: "c" })pb");
  EXPECT_OK(CheckCandidateAgainstProblem(Valid(), problem));
  const struct {
    const char* reason;
    std::function<void(v1::CandidateSpec*)> edit;
  } cases[] = {
      {"PROBLEM_MISMATCH", [](auto* s) { s->set_problem("gelu"); }},
      {"CANDIDATE_MALFORMED", [](auto* s) { s->mutable_parameters(0)->set_name("n"); }},
      {"CANDIDATE_MALFORMED",
       [](auto* s) { s->mutable_plan()->mutable_workspaces(0)->set_name("a"); }},
      {"CANDIDATE_MALFORMED",
       [](auto* s) { s->mutable_plan()->mutable_workspaces(0)->set_bytes("m"); }},
      {"CANDIDATE_MALFORMED",
       [](auto* s) { s->mutable_plan()->mutable_launches(0)->set_grid(0, "a"); }},
      {"CANDIDATE_MALFORMED",
       [](auto* s) { s->mutable_plan()->mutable_launches(0)->set_args(0, "d"); }},
      {"CANDIDATE_MALFORMED",
       [](auto* s) { s->mutable_plan()->mutable_launches(0)->set_args(0, "a + 1"); }},
      {"CANDIDATE_MALFORMED",
       [](auto* s) { s->mutable_plan()->mutable_launches(0)->set_shared_bytes("scratch"); }},
  };
  for (const auto& c : cases) {
    v1::Candidate candidate = Valid();
    c.edit(candidate.mutable_spec());
    EXPECT_THAT(CheckCandidateAgainstProblem(candidate, problem), HasReason(c.reason));
  }
}

TEST(CandidateDigestTest, CoversContentAndNotTheLabel) {
  const std::string digest = CandidateDigest(Valid());
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(CandidateName(digest), "candidates/" + digest.substr(0, 32));
  v1::Candidate same = Valid();
  same.mutable_spec()->set_label("other");
  same.mutable_spec()->mutable_origin()->set_model("m");
  same.mutable_spec()->set_problem("problems/vector_add");
  same.mutable_spec()->add_sources("a.cu");  // what the default would be
  same.set_name("candidates/x");
  EXPECT_EQ(CandidateDigest(same), digest);

  const std::function<void(v1::Candidate*)> edits[] = {
      [](auto* c) { c->mutable_spec()->set_problem("gelu"); },
      [](auto* c) { c->mutable_files(0)->set_content("int b;"); },
      [](auto* c) { c->mutable_files(0)->set_path("b.cu"); },
      [](auto* c) { c->add_files()->set_path("a.h"); },
      [](auto* c) { c->mutable_spec()->add_compile_options("-g"); },
      [](auto* c) { c->mutable_spec()->mutable_parameters(0)->set_values(0, 64); },
      [](auto* c) { c->mutable_spec()->set_constraints(0, "BLOCK <= 512"); },
      [](auto* c) { c->mutable_spec()->mutable_plan()->mutable_launches(0)->set_grid(0, "1"); },
      [](auto* c) { c->mutable_spec()->mutable_plan()->mutable_launches(0)->add_block("1"); },
      [](auto* c) { c->mutable_spec()->mutable_plan()->mutable_workspaces(0)->set_bytes("1"); },
  };
  std::set<std::string> digests = {digest};
  for (const auto& edit : edits) {
    v1::Candidate other = Valid();
    edit(&other);
    EXPECT_TRUE(digests.insert(CandidateDigest(other)).second);
  }
}

v1::CandidateSpec Space(const std::vector<std::string>& constraints) {
  v1::CandidateSpec spec;
  for (const auto& [name, values] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"B", {256, 128, 64}}, {"A", {1, 2, 3}}, {"C", {0, 5}}}) {
    auto* parameter = spec.add_parameters();
    parameter->set_name(name);
    for (const int64_t value : values) parameter->add_values(value);
  }
  for (const std::string& constraint : constraints) spec.add_constraints(constraint);
  return spec;
}

TEST(ResolveConfigurationTest, FirstInTheOrderOfDeclaration) {
  const struct {
    std::vector<std::string> constraints;
    ValueMap want;
  } cases[] = {
      {{}, {{"A", 1}, {"B", 256}, {"C", 0}}},
      {{"A > 1"}, {{"A", 2}, {"B", 256}, {"C", 0}}},
      {{"A * B <= 128", "C > 0"}, {{"A", 1}, {"B", 128}, {"C", 5}}},
      {{"B / C > 0"}, {{"A", 1}, {"B", 256}, {"C", 5}}},
      {{"1"}, {{"A", 1}, {"B", 256}, {"C", 0}}},
  };
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(const ValueMap got, ResolveConfiguration(Space(c.constraints), {}));
    EXPECT_EQ(got, c.want);
  }
  ASSERT_OK_AND_ASSIGN(const ValueMap none, ResolveConfiguration(v1::CandidateSpec(), {}));
  EXPECT_TRUE(none.empty());
}

TEST(ResolveConfigurationTest, ChecksWhatWasAskedFor) {
  const v1::CandidateSpec spec = Space({"A * B <= 256"});
  ASSERT_OK_AND_ASSIGN(const ValueMap got,
                       ResolveConfiguration(spec, {{"A", 2}, {"B", 128}, {"C", 5}}));
  EXPECT_EQ(got.at("A"), 2);
  const ValueMap bad[] = {{{"A", 2}},
                          {{"A", 2}, {"B", 256}, {"C", 5}},
                          {{"A", 4}, {"B", 64}, {"C", 5}},
                          {{"A", 1}, {"B", 64}, {"C", 5}, {"D", 1}}};
  for (const ValueMap& requested : bad) {
    EXPECT_THAT(ResolveConfiguration(spec, requested), HasReason("CONFIGURATION_INVALID"));
  }
  EXPECT_THAT(ResolveConfiguration(v1::CandidateSpec(), {{"A", 1}}),
              HasReason("CONFIGURATION_INVALID"));
  EXPECT_THAT(ResolveConfiguration(Space({"A > 3"}), {}), HasReason("CONFIGURATION_INVALID"));
  EXPECT_THAT(ResolveConfiguration(Space({"0"}), {}), HasReason("CONFIGURATION_INVALID"));
}

TEST(ResolveConfigurationTest, AHostileSpaceEndsTheSearch) {
  v1::CandidateSpec spec;
  for (int p = 0; p < 32; ++p) {
    auto* parameter = spec.add_parameters();
    parameter->set_name(absl::StrCat("P", p));
    for (int v = 0; v < 1024; ++v) parameter->add_values(v);
  }
  spec.add_constraints("P31 < 0");
  EXPECT_THAT(ResolveConfiguration(spec, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps")));
}

}  // namespace
}  // namespace assay
