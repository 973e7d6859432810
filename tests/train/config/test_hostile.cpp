// Mutated configs: whatever a file says, the answer is a config or a list of problems.
#include <doctest/doctest.h>

#include <random>

#include "tests/test_level.h"
#include "tests/train/config/fixture.h"
#include "train/config/sweep_cells.h"

using namespace waymark;
using namespace waymark::train;

TEST_CASE("fuzz: mutated files and settings") {
  const std::string seed_text =
      "format = 'waymark-config-1'\ntask = 'toy(length=16, test_lengths=[32, 64])'\nseed = 3\n[model]\nembed_dim = 32\n"
      "position = '[learned(max_len=64) + rope]*1, huang-m4(clip=3, beyond=zero)'\nattention = \"dense\"\ndropout = "
      "1e-1\n"
      "[optim]\nno_decay = ['*.bias', \"x\"]\ngroups = [{match = '*', lr_scale = 2.0}]\n[sweep]\nseeds = '0..1'\n"
      "[sweep.grid]\n'model.norm' = ['pre', 'post']\n[[sweep.case]]\nmodel.norm_eps = "
      "1e-6\n[[sweep.exclude]]\nmodel.norm = 'po*'\n";
  std::mt19937 random(5);
  const std::string letters = "[]{}()=,.'\"\\\n #+-*0123456789eabtruefals_\xc3\xbc\x01";
  int fine = 0, wrong = 0;
  for (int round = 0; round < test::by_level(100, 400, 20000); ++round) {
    std::string text = seed_text;
    for (size_t edits = random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size(), length = random() % 6;
      switch (random() % 4) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, 1, letters[random() % letters.size()]); break;
        case 2: text[at] = letters[random() % letters.size()]; break;
        default: text.insert(random() % text.size(), text.substr(at, length)); break;
      }
    }
    CAPTURE(text);
    const test::Attempt a =
        test::attempt(text, {"model.position=" + text.substr(random() % text.size(), random() % 40)});
    CHECK(a.config.has_value() == a.problems.empty());
    Problems problems;
    const std::vector<Source> files{read_toml_text(text, "a.toml", problems)};
    const SweepCells cells = expand_sweep(files, {}, "", false, problems, test::small_registries());
    CHECK((problems.empty() || cells.cells.empty()));
    if (!problems.empty())
      ++wrong;
    else
      ++fine;
    for (const SweepCell& cell : cells.cells)
      CHECK(test::attempt(cell.config.to_toml()).config->id() == cell.config.id());
  }
  CHECK(fine > 10);
  CHECK(wrong > 10);
}
