#include "tests/train/config/exercise_config.h"

#include <cstdlib>

#include "tests/train/config/small_registries.h"
#include "train/config/resolve.h"
#include "train/config/sweep_cells.h"

namespace waymark::test {

using namespace train;

namespace {

// Not a doctest check: the fuzz target is built without doctest.
void require(bool ok) {
  if (!ok) std::abort();
}

// The lines of a printed config without the origins of the values.
std::string values_of(const Config& config) {
  std::string out;
  const std::string text = config.to_toml();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    out += line.substr(0, line.rfind("  # ")) + '\n';
    at = end + 1;
  }
  return out;
}

// What a config prints is the same config.
void check_round_trip(const Config& config) {
  Problems problems;
  const std::vector<Source> sources{read_toml_text(config.to_toml(), "b.toml", problems)};
  const auto again = resolve_config(sources, problems, small_registries());
  require(problems.empty() && again && again->id() == config.id() && values_of(*again) == values_of(config));
}

// Sweeps of many runs are legal, and too slow for an input of a fuzzer.
bool is_small(const SweepSource& sweep) {
  size_t cells = 1 + sweep.cases.size();
  for (const RawEntry& entry : sweep.settings) {
    const nn::SpecValue& value = entry.value.value;
    if (value.kind() == nn::SpecValue::Kind::list) cells *= std::max<size_t>(1, value.list().size());
    else if (value.kind() == nn::SpecValue::Kind::text && value.text().size() > 4) return false;  // "0..1" is small
    if (cells > 16) return false;
  }
  return true;
}

}  // namespace

bool exercise_config(std::string_view bytes) {
  const size_t mark = bytes.find(kSettingMark);
  Problems problems;
  const Source file = read_toml_text(bytes.substr(0, mark), "a.toml", problems);
  const Problems of_file = problems;
  std::vector<Override> overrides;
  for (size_t at = mark; at < bytes.size();) {
    const size_t next = std::min(bytes.find(kSettingMark, at + 1), bytes.size());
    Override o;
    if (split_setting(std::string(bytes.substr(at + 1, next - at - 1)), "--set", o, problems)) overrides.push_back(o);
    at = next;
  }
  std::vector<Source> sources{file, command_line_source(overrides, problems)};
  const size_t before = problems.size();
  const auto config = resolve_config(sources, problems, small_registries());
  require(config.has_value() == (problems.size() == before));
  require(problems.empty() || !problems_text(problems).empty());
  if (config) check_round_trip(*config);
  if (file.sweep.present && is_small(file.sweep)) {
    Problems of_sweep = of_file;
    const SweepCells cells = expand_sweep({file}, {}, "", false, of_sweep, small_registries());
    for (const SweepCell& cell : cells.cells)
      if (cell.refused.empty()) check_round_trip(cell.config);
  }
  return problems.empty();
}

const std::vector<std::string>& config_samples() {
  static const std::vector<std::string> samples = [] {
    const std::string small = "task = 'toy'\n";
    const std::string full =
        "format = 'waymark-config-1'\ntask = 'toy(length=16, test_lengths=[32, 64])'\nseed = 3\n"
        "[model]\nembed_dim = 32\nnum_heads = 4\nnum_layers = 2\ndropout = 1e-1\n"
        "position = '[learned(max_len=64) + rope]*1, huang-m4(clip=3, beyond=zero)'\nattention = \"dense\"\n"
        "[optim]\noptimizer = 'adamw(lr=1e-3)'\nschedule = 'cosine(warmup=10)'\nno_decay = ['*.bias', \"x\"]\n"
        "groups = [{match = '*', lr_scale = 2.0}]\n"
        "[sweep]\nseeds = '0..1'\n[sweep.grid]\n'model.norm' = ['pre', 'post']\n"
        "[[sweep.case]]\nmodel.norm_eps = 1e-6\n[[sweep.exclude]]\nmodel.norm = 'po*'\n";
    return std::vector<std::string>{
        small, full, "", "task = 'next'\ntrain.steps = 10\ntrain.batch = 4\n",
        small + "model.position = 'rope'\x1emodel.embed_dim=64\x1emodel.attention=local(window=4)",
        small + "\x1etask=choice\x1e" "train.steps=[1, 2]\x1e=\x1ex\x1emodel.position=\"[rope]*3, none\"",
        small + "[sweep.zip]\nseed = [1, 2]\n'model.embed_dim' = [32, 64]\n",
        "task = 'toy'  # \xc3\xbc\nname = 'gr\xc3\xbc\xc3\x9f'\n",
        // broken ones
        "task = \xc3\xbc", "\xc3\xbc = 1\n", "task = 'toy' \xc3\xbc\n", "task = 'toy'\n[\xc3\xbc]\n", "x = {a = 1 \xc3\xbc}\n",
        "task = ", "task = 'toy", "[model", "[[model]]\n", "task = 1979-05-27", "model = 3\n", "task = 'toi'\n",
        small + "task = 'toy'\n", small + "model.num_head = 8\n", small + "model.position = 'rope('\n",
        small + "model.position = '[rope]*65536'\n", small + "model.embed_dim = 9223372036854775808\n",
        small + "model.embed_dim = 0x10\nmodel.num_heads = 3\n", small + "optim.groups = [{}, {match = 1}]\n",
        small + "optim.groups = [[{a = 1}]]\n", small + "x = {a = {b = {c = {d = 1}}}}\n",
        small + "model.dropout = nan\nmodel.norm_eps = inf\n", small + std::string(200, '['),
        small + "sweep.grid = 3\n[[sweep.case]]\n", "\xff\xfe", std::string("task = '\0'\n", 11)};
  }();
  return samples;
}

}  // namespace waymark::test
