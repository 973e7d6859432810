#include "train/cli/command_list.h"

namespace waymark::train::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {table_command(), verify_command(), explain_command(), matrix_command(),
                                            help_command()};
  return list;
}

}  // namespace waymark::train::cli
