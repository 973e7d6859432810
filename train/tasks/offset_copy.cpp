// offset-copy: x uniform over `vocab` symbols, the target at t is x at t - shift; the first `shift` places are not
// scored. What it takes is one relative look-up; the test sets of other lengths ask whether it holds there, too.
#include "train/tasks/generated.h"

namespace waymark::train {

namespace {

class OffsetCopy final : public GeneratedTask {
 public:
  OffsetCopy(const TaskRequest& request, TaskFacts facts)
      : GeneratedTask(request, std::move(facts), [](i64 items, i64) { return items; }), vocab_(spec().integer("vocab")),
        shift_(spec().integer("shift")) {}

  i64 inputs() const override { return vocab_; }
  i64 outputs() const override { return vocab_; }
  i64 pad_id() const override { return 0; }  // all items of a batch are equally long
  std::vector<Baseline> baselines(std::string_view split) const override { return label_baselines(split); }

 private:
  void generate(DrawSequence& draws, i64 length, i64* tokens, i64* targets) const override {
    for (i64 t = 0; t < length; ++t) {
      tokens[t] = draws.randint(0, vocab_);
      if (t >= shift_) targets[t] = tokens[t - shift_];
    }
  }
  std::string name_of_token(i64 token) const override { return fmt::to_string(token); }

  i64 vocab_, shift_;
};

TaskFacts offset_copy_facts(const nn::Options& spec) {
  TaskFacts facts = generated_facts(spec, 2000, 2000);
  facts.causal = spec.boolean("causal");
  return facts;
}

}  // namespace

TaskKind offset_copy_kind() {
  std::vector<nn::OptionDef> options = {{"vocab", nn::int_option(16, 2, 1 << 20), "symbols"},
                                        {"shift", nn::int_option(3, 1, 1 << 20), "how far back the target stands"}};
  for (nn::OptionDef& o : generated_options(32, 2, {32, 64, 128, 256})) options.push_back(std::move(o));
  options.push_back({"causal", nn::bool_option(false), "the model sees earlier tokens only"});
  nn::OptionTable table{"offset-copy", std::move(options), "each token's target is the one `shift` places before it",
                        [](const nn::Options& spec, std::vector<std::string>& problems) {
                          check_generated_options(spec, problems);
                          std::vector<i64> lengths = spec.integers("test_lengths");
                          lengths.push_back(spec.integer("length"));
                          for (const i64 n : lengths)
                            if (n <= spec.integer("shift")) {
                              problems.push_back(fmt::format("shift={} leaves nothing to score in {} tokens", spec.integer("shift"), n));
                              break;
                            }
                        }};
  return {std::move(table), offset_copy_facts, [](const TaskRequest& request) -> std::unique_ptr<Task> {
            return std::make_unique<OffsetCopy>(request, offset_copy_facts(*request.spec));
          }};
}

}  // namespace waymark::train
