// LayerReport: all that is known about one attention layer of a model on some items of its task; what a run keeps at its
// end and what `waymark inspect` draws.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/inspect/distance_statistics.h"
#include "train/inspect/encoding_pictures.h"
#include "train/trainer/model.h"

namespace waymark::train {

// The weights of one item: means over blocks of queries and keys, so that a long item costs no more than a short one.
struct AttentionMap {
  i64 heads = 0, queries = 0, keys = 0;    // of the attention
  i64 block = 1;                           // queries and keys behind one cell
  i64 rows = 0, cols = 0;                  // cells
  std::vector<double> cells = {};               // [heads, rows, cols]; NaN: padding
};

struct LayerReport {
  std::string attention = {}, position = {};         // specs, short
  DistanceStatistics statistics = {};
  std::vector<EncodingPicture> pictures = {};
  AttentionMap map = {};                        // of the item; heads = 0: the attention has no weights
  Tensor weights = {};                     // f64 [H, Lq, Lk] of the item, if wanted
  std::vector<std::string> notes = {};          // what could not be looked at, in words
};

struct ModelReport {
  std::vector<LayerReport> layers = {};
  std::vector<EncodingPicture> input = {};      // encodings at the input
  i64 items = 0;                           // behind the statistics
  i64 length = 0;                          // tokens of the item
};

struct LookOptions {
  bool maps = false;                       // of the first batch's first item
  i64 most_cells = 64;                     // of a map, a side
  bool weights = false;                    // the whole [H, Lq, Lk] of that item
  std::function<void(i64 done, i64 all)> progress = {};
};

// Looks at batch(0), ..., batch(count - 1), one item each, without gradients and dropout; no stream of random numbers
// advances, and the training mode is as before.
WAYMARK_API ModelReport look_at_model(TaskModel& model, i64 count, const std::function<Batch(i64)>& batch,
                                      const LookOptions& options = {});

// The arrays of <folder>/position/<layer>.npz, as distance_statistics.h and encoding_pictures.h name them, and `weights`.
WAYMARK_API NamedTensors arrays_of(const LayerReport& layer);
// Writes them, and position/input.npz for encodings at the input. Returns the files.
WAYMARK_API std::vector<std::filesystem::path> write_arrays(const std::filesystem::path& folder, const ModelReport& report);

}  // namespace waymark::train
