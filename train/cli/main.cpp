#include "train/cli/command.h"
#include "train/cli/console.h"

int main(int argc, char** argv) {
  waymark::train::cli::keep_places_of_streams();
  return waymark::train::cli::run_program(std::vector<std::string>(argv + (argc > 0), argv + argc));
}
