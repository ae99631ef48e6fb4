// assay: the command line.
#include <string>
#include <vector>

#include "client/cli/command.h"

int main(int argc, char** argv) {
  return assay::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc));
}
