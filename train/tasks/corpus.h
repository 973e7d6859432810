// Corpus: a text as symbol ids, cut into a training, a validation and a test part; what char-mlm and char-lm share.
#pragma once

#include <string>
#include <vector>

#include "nn/spec/options.h"
#include "train/data/text.h"
#include "train/tasks/task.h"

namespace waymark::train {

// Symbols [begin, end) of the corpus.
struct TextPart {
  i64 begin = 0, end = 0;
  i64 size() const { return end - begin; }
};

class Corpus {
 public:
  // Options of the spec: source, path, level, lower, collapse, verse_labels. data.split: own = 90 / 5 / 5 % in the order
  // of the text; nanogpt = 90 / 10 %, the last part being validation and test at once. source=licenses has parts of its
  // own: three licences, and a fourth one as validation and test at once. ConfigError for a text that is
  // missing, unreadable, or has fewer than `least` symbols in one of its parts.
  Corpus(const TaskRequest& request, i64 least);

  static std::vector<nn::OptionDef> options();
  static void check_options(const nn::Options& spec, std::vector<std::string>& problems);

  const std::vector<i32>& ids() const { return ids_; }
  Vocabulary& vocabulary() { return vocabulary_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  TextPart train, val, test;
  bool test_is_val = false;
  const std::string& origin() const { return origin_; }  // "kjv", or the path

 private:
  std::vector<i32> ids_;
  Vocabulary vocabulary_;
  std::string origin_;
};

// Windows of `length` symbols in a part, without overlap; with a limit, `limit` of them spread evenly. What is shorter
// than a window at the end of the part is in none.
struct Windows {
  TextPart part;
  i64 length = 0, count = 0, all = 0;
  Windows() = default;
  Windows(TextPart part_, i64 length_, i64 limit);
  i64 begin(i64 item) const { return part.begin + item * all / count * length; }
};

}  // namespace waymark::train
