// signed-neighbour: what a token must look up stands at a signed distance, which either the token itself says (query x
// position) or the one that is looked up (key x position). With a decoy on the other side of each slot, a method that
// does not tell left from right cannot do better than guess between two.
//
// Tokens: contents 0..7; receivers R_o and senders S_(o,c), o in {-3,-2,-1,1,2,3}, c in 0..7; the mask M: 63.
// * Receiver at i: R_o; at i+o a random content, which is the label; at i-o another one, the decoy.
// * Masked slot at i: M; at i-o the sender S_(o,c), label c; at i+o a decoy sender.
// * Slots, floor(N/5) of them where they find room, receivers and masked ones in turn: the places 3 ... N-4 are visited
//   in random order, o is drawn for each visit, and a visit is passed over if i, i+o or i-o is taken.
// * Afterwards every decoy sender, and each free place with probability 1/2, becomes a sender with random c and an o
//   whose own target is no masked slot (a content if there is none); the rest are random contents.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "train/tasks/generated.h"

namespace waymark::train {

namespace {

constexpr std::array<i64, 6> kOffsets = {-3, -2, -1, 1, 2, 3};
constexpr i64 kContents = 8, kOffsetCount = static_cast<i64>(kOffsets.size()), kReceivers = kContents,
              kSenders = kReceivers + kOffsetCount, kMask = kSenders + kOffsetCount * kContents, kTokens = kMask + 1;

i64 sender(i64 offset, i64 content) { return kSenders + offset * kContents + content; }
bool is_receiver(i64 token) { return token >= kReceivers && token < kSenders; }

// Accuracy of all slots, of receivers, of masked slots; loss.
class NeighbourMetrics final : public Metrics {
 public:
  void add(const Tensor& output, const Batch& batch) override {
    all_.add(output, batch);
    for (const bool masked : {false, true}) {
      Batch part = batch;
      part.targets = make_empty(batch.targets.shape(), kI64);
      const std::vector<i64> tokens = batch.tokens.to_vector<i64>(), targets = batch.targets.to_vector<i64>();
      for (size_t i = 0; i < tokens.size(); ++i)
        part.targets.data<i64>()[i] = (tokens[i] == kMask) == masked ? targets[i] : kNotScored;
      (masked ? masked_ : receivers_).add(output, part);
    }
  }
  std::vector<std::pair<std::string, MetricValue>> values() const override {
    auto list = all_.values();
    for (const auto& [name, part] : {std::pair("receiver_accuracy", &receivers_), {"masked_accuracy", &masked_}})
      if (part->n() > 0) list.insert(list.end() - 1, {name, part->values().front().second});
    return list;
  }
  i64 n() const override { return all_.n(); }

 private:
  ScoredMetrics all_, receivers_, masked_;
};

class SignedNeighbour final : public GeneratedTask {
 public:
  SignedNeighbour(const TaskRequest& request, TaskFacts facts)
      // As many tokens at every length.
      : GeneratedTask(request, std::move(facts), [length = request.spec->integer("length")](i64 items, i64 n) {
          return std::max<i64>(1, 2 * (items * length / 2 / n));
        }) {}

  i64 inputs() const override { return kTokens; }
  i64 outputs() const override { return kContents; }
  i64 pad_id() const override { return kMask; }  // all items of a batch are equally long
  std::unique_ptr<Metrics> metrics() const override { return std::make_unique<NeighbourMetrics>(); }

  // Beside those of the labels: a reader of the distance that always looks to the right.
  std::vector<Baseline> baselines(std::string_view split) const override {
    std::vector<Baseline> list = label_baselines(split);
    i64 receivers = 0, right = 0;
    each_item(split, [&](const i64* tokens, const i64* targets, i64 length) {
      for (i64 i = 0; i < length; ++i)
        if (is_receiver(tokens[i])) {
          ++receivers;
          right += tokens[i + std::abs(kOffsets[static_cast<size_t>(tokens[i] - kReceivers)])] == targets[i];
        }
    });
    if (receivers > 0)
      list.push_back({"distance without sign", std::string(split), "receiver_accuracy",
                      static_cast<double>(right) / static_cast<double>(receivers)});
    return list;
  }

 private:
  void generate(DrawSequence& draws, i64 length, i64* tokens, i64* targets) const override {
    constexpr i64 kFree = -1, kDecoy = -2;
    std::fill_n(tokens, length, kFree);
    std::vector<i64> order;
    for (i64 i = 3; i < length - 3; ++i) order.push_back(i);
    for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[static_cast<size_t>(draws.randint(0, static_cast<i64>(k)))]);
    i64 slots = 0;
    for (const i64 i : order) {
      if (slots == length / 5) break;
      const i64 offset = draws.randint(0, kOffsetCount), o = kOffsets[static_cast<size_t>(offset)];
      if (tokens[i] != kFree || tokens[i + o] != kFree || tokens[i - o] != kFree) continue;
      const i64 label = draws.randint(0, kContents);
      targets[i] = label;
      if (slots++ % 2 == 0) {
        tokens[i] = kReceivers + offset;
        tokens[i + o] = label;
        tokens[i - o] = (label + draws.randint(1, kContents)) % kContents;
      } else {
        tokens[i] = kMask;
        tokens[i - o] = sender(offset, label);
        tokens[i + o] = kDecoy;
      }
    }
    // Where a sender at `at` may point: not at a masked slot.
    const auto fill = [&](i64 at) {
      std::vector<i64> allowed;
      for (i64 offset = 0; offset < kOffsetCount; ++offset) {
        const i64 target = at + kOffsets[static_cast<size_t>(offset)];
        if (target < 0 || target >= length || tokens[target] != kMask) allowed.push_back(offset);
      }
      const i64 content = draws.randint(0, kContents);
      if (allowed.empty()) return content;
      return sender(allowed[static_cast<size_t>(draws.randint(0, static_cast<i64>(allowed.size())))], content);
    };
    for (i64 i = 0; i < length; ++i) {
      if (tokens[i] == kDecoy || (tokens[i] == kFree && draws.bernoulli(0.5))) tokens[i] = fill(i);
      else if (tokens[i] == kFree) tokens[i] = draws.randint(0, kContents);
    }
  }

  std::string name_of_token(i64 token) const override {
    if (token < kContents) return fmt::to_string(token);
    if (token == kMask) return "M";
    if (is_receiver(token)) return fmt::format("R{:+}", kOffsets[static_cast<size_t>(token - kReceivers)]);
    const i64 s = token - kSenders;
    return fmt::format("S{:+}:{}", kOffsets[static_cast<size_t>(s / kContents)], s % kContents);
  }
};

TaskFacts signed_neighbour_facts(const nn::Options& spec) {
  const i64 items = std::max<i64>(1, 2 * (2048 / spec.integer("length")));
  TaskFacts facts = generated_facts(spec, items, items);
  facts.metrics = {"accuracy", "receiver_accuracy", "masked_accuracy", "loss"};
  return facts;
}

}  // namespace

TaskKind signed_neighbour_kind() {
  // Shorter than 10 there is no room for a slot of each kind.
  nn::OptionTable table{"signed-neighbour", generated_options(32, 10, {32, 64, 256}),
                        "look-ups at a signed distance, with decoys on the other side", check_generated_options};
  return {std::move(table), signed_neighbour_facts, [](const TaskRequest& request) -> std::unique_ptr<Task> {
            return std::make_unique<SignedNeighbour>(request, signed_neighbour_facts(*request.spec));
          }};
}

}  // namespace waymark::train
