#include "worker/builder/forbidden_device_code.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

std::string Module(const std::string& declarations, const std::string& body) {
  return absl::StrCat(".version 8.0\n.target sm_90\n.address_size 64\n", declarations,
                      "\n.visible .entry k(.param .u64 a)\n{\n.reg .b64 %rd<9>;\n.loc 1 12 3\n",
                      body, "\nret;\n}\n.file 1 \"kernel.cu\"\n");
}

TEST(ForbiddenDeviceCodeTest, IsRefusedAndItsHonestNeighbourIsNot) {
  constexpr char kFar[] = ".extern .func (.param .b32 r) far(.param .b32 p);";
  const struct {
    const char* name;
    std::string declarations;
    std::string body;
    std::string reason;  // empty: none
  } rows[] = {
      {"launches a kernel",
       ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);",
       "call.uni (r), cudaLaunchDeviceV2, (p, s);", "DEVICE_LAUNCH_FORBIDDEN"},
      {"asks for room for arguments first",
       ".extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 p);",
       "call.uni (r), cudaGetParameterBufferV2, (p);", "DEVICE_LAUNCH_FORBIDDEN"},
      {"launches a graph",
       ".extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 g, .param .b64 s);",
       "call.uni (r), cudaGraphLaunch, (g, s);", "DEVICE_LAUNCH_FORBIDDEN"},
      {"has the name as a pointer",
       ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);",
       "mov.u64 %rd1, cudaLaunchDeviceV2;", "DEVICE_LAUNCH_FORBIDDEN"},
      {"declares it and never calls",
       ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);", "", ""},
      {"lets the next launch begin", "", "griddepcontrol.launch_dependents;",
       "DEPENDENT_LAUNCH_FORBIDDEN"},
      {"hides that in blanks", "", "griddepcontrol /* */ .launch_dependents;",
       "DEPENDENT_LAUNCH_FORBIDDEN"},
      {"waits for an earlier launch", "", "griddepcontrol.wait;", ""},
      {"calls what is nowhere", kFar, "call.uni (r), far, (p);", "UNDEFINED_SYMBOL"},
      {"calls what comes later",
       absl::StrCat(kFar, "\n.visible .func (.param .b32 r) far(.param .b32 p) { ret; }"),
       "call.uni (r), far, (p);", ""},
      {"calls an alias", absl::StrCat(kFar, " .func other() { ret; } .alias far, other;"),
       "call.uni (r), far, (p);", ""},
      {"reads a variable of another module", ".extern .global .u32 x;", "ld.global.u32 %r1, [x];",
       "UNDEFINED_SYMBOL"},
      {"has dynamic shared memory", ".extern .shared .align 16 .b8 x[];", "ld.shared.u32 %r1, [x];",
       ""},
      {"prints and asserts",
       ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
       ".extern .func __assertfail(.param .b64 a, .param .b64 b);",
       "call.uni (r), vprintf, (a, b); call.uni __assertfail, (a, b);", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto found = FindForbiddenDeviceCode(Module(row.declarations, row.body));
    EXPECT_EQ(found.has_value() ? found->reason : "", row.reason);
    if (!found.has_value()) continue;
    EXPECT_EQ(found->diagnostic.file, "kernel.cu");
    EXPECT_EQ(found->diagnostic.line, 12);
    EXPECT_THAT(found->diagnostic.message, HasSubstr("PTX line"));
  }
}

}  // namespace
}  // namespace assay
