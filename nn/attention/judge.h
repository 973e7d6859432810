// The judge: which position encoding goes with which attention. It reads the facts of both and the refinement list
// and nothing else; constructors, configs, `explain`, `matrix` and tests ask it.
#pragma once

#include <string>
#include <vector>

#include "nn/attention/registry.h"

namespace waymark::nn {

enum class Ruling : u8 {
  accept,
  warn,       // legal, but a named property is lost
  refuse,
  not_built,  // one of the two is not part of this version
};

struct WAYMARK_API Verdict {
  Ruling ruling = Ruling::accept;
  // refuse: the first missing fact in words; warn: the lost property. One line each, without the names.
  std::vector<std::string> reasons = {};
  std::string encoding = {}, attention = {};               // as printed: short specs
  std::vector<std::string> works_here = {};           // encodings that work on this attention
  std::vector<std::string> works_there = {};          // attentions on which this encoding works
  // "t5 cannot run on performer: it never forms ...", and what works instead; one line for each warning; empty if accepted.
  std::string text() const;
};

// How two specs go together in a call. `with_alternatives` fills works_here and works_there of a refusal.
WAYMARK_API Verdict judge(const Options& encoding, const Options& attention, bool causal = false, bool cross = false,
                          bool with_alternatives = true);

// What an attention cannot do, in words, with what can: "routing cannot be causal: ...; causal here: dense, local, ...".
// The first three answer whatever the facts say.
WAYMARK_API std::string causal_refusal(const Options& attention);
WAYMARK_API std::string cross_refusal(const Options& attention);
WAYMARK_API std::string shared_heads_refusal(const Options& attention);
// Empty if it takes the mask.
WAYMARK_API std::string mask_refusal(const Options& attention, const Mask& mask, const AttentionFacts& facts);

// A whole model: sums per layer, attentions per layer, sizes. Appends every problem and every warning once.
struct ModelSpecs {
  std::vector<EncodingSum> encodings = {};
  std::vector<Options> attentions = {};  // as many
  EncodingSizes sizes = {};
  i64 kv_heads = 0;                 // 0: num_heads
  bool causal = false, cross = false;
  Mask mask = {};                   // of every call
  bool cls_has_position = false;    // the sequence begins with a [CLS] at position 0, which is read as its summary
};
WAYMARK_API void judge_model(const ModelSpecs& model, std::vector<std::string>& problems,
                             std::vector<std::string>& warnings);

// The whole table, with default options: rows are encodings, columns attentions, in the order of the design.
struct WAYMARK_API JudgeMatrix {
  struct Cell {
    Ruling bidirectional = Ruling::not_built, causal = Ruling::not_built;
    std::vector<std::string> notes = {};  // reasons, for footnotes
    // yes, w (warn), - (refused), ? (not part of this version); * behind it: only in a causal call
    std::string mark() const;
  };
  std::vector<std::string> encodings = {}, attentions = {};
  std::vector<std::vector<Cell>> cells = {};  // [encoding][attention]
};
WAYMARK_API JudgeMatrix judge_matrix(bool cross = false);

// Parameters of an attention with this sum whose gradient is 0, because softmax ignores what is constant along a row (those
// of encodings: while every token has a position): names below the attention.
WAYMARK_API std::vector<std::string> invariant_parameters(const EncodingSum& encodings, const Options& attention);

}  // namespace waymark::nn
