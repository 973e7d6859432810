// Internal: settings of the process that a config decides, for as long as its run or evaluation lasts.
#pragma once

#include "core/parallel/parallel.h"
#include "core/tensor/dtype.h"
#include "train/config/config.h"

namespace waymark::train {

// run.threads and run.precision; put back at the end of the scope.
class ProcessSettings {
 public:
  explicit ProcessSettings(const Config& config) : threads_(num_threads()), dtype_(default_dtype()) {
    if (!config.is_word("run.threads", "auto")) set_num_threads(static_cast<int>(config.integer("run.threads")));
    set_default_dtype(config.text("run.precision") == "f64" ? kF64 : kF32);
  }
  ~ProcessSettings() {
    set_num_threads(threads_);
    set_default_dtype(dtype_);
  }
  ProcessSettings(const ProcessSettings&) = delete;
  ProcessSettings& operator=(const ProcessSettings&) = delete;

 private:
  int threads_;
  DType dtype_;
};

}  // namespace waymark::train
