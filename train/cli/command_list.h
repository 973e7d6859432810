// The commands, one function and one file each; commands.cpp lists them.
#pragma once

#include "train/cli/command.h"

namespace waymark::train::cli {

Command table_command();
Command explain_command();
Command matrix_command();
Command verify_command();
Command help_command();

}  // namespace waymark::train::cli
