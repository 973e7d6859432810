#include "train/cli/command.h"

int main(int argc, char** argv) {
  return waymark::train::cli::run_program(std::vector<std::string>(argv + (argc > 0), argv + argc));
}
