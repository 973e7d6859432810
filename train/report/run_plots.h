// The plots of a comparison, from the folders of its runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/report/loaded_run.h"

namespace waymark::train {

// Writes curves.svg (validation loss against steps), length.svg (test loss against test length, if there are other test
// sets), attention.svg (mean attention weight against distance, first and last layer) and tables.svg (norm of the rows
// of relative tables against distance); those without data are left out. One line per value of `rows`, mean and band
// over seeds. Returns the files. Error if the folder cannot be written.
WAYMARK_API std::vector<std::string> write_plots(const std::vector<LoadedRun>& runs, const std::vector<std::string>& rows,
                                                 const std::filesystem::path& folder);

}  // namespace waymark::train
