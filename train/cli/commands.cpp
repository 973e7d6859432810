#include "train/cli/command_list.h"
#include "train/cli/requests.h"

namespace waymark::train::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {train_command(run_train), sweep_command(run_sweep), eval_command(run_eval), inspect_command(run_inspect), step_command(run_step), table_command(),
                                            data_command(run_data),   verify_command(),         explain_command(),
                                            matrix_command(),         help_command()};
  return list;
}

}  // namespace waymark::train::cli
