// The id of a run, its name, and config.toml that repeats it.
#include <doctest/doctest.h>

#include <set>

#include "tests/train/config/fixture.h"
#include "train/config/hash.h"

using namespace waymark;
using namespace waymark::train;
using test::config_of;

TEST_CASE("XXH3-128 in the canonical order") {
  CHECK(xxh128_hex("") == "99aa06d3014798d86001c324468d497f");  // the published value of the empty input
  CHECK(xxh128_hex("a") != xxh128_hex("b"));
}

TEST_CASE("the id is the hash of the sorted lines of the deciding keys") {
  const Config c = config_of("task = 'toy'");
  std::string text = "waymark-id-1\n";
  size_t lines = 0;
  for (const auto& [key, value] : c.id_lines()) {
    text += key + "=" + value + "\n";
    ++lines;
  }
  CHECK(c.id() == xxh128_hex(text).substr(0, 12));
  CHECK(c.id_lines().at("seed") == "0");
  CHECK(c.id_lines().at("task") == "toy(length=32, test_lengths=[])");
  CHECK(c.id_lines().at("optim.optimizer") == "adamw(lr=0.001)");
  CHECK(c.id_lines().at("train.epochs") == "");
  CHECK_FALSE(c.id_lines().count("name"));
  CHECK_FALSE(c.id_lines().count("run.threads"));
  CHECK_FALSE(c.id_lines().count("model.max_len"));
  size_t deciding = 0;
  for (const KeyInfo& key : config_keys()) deciding += key.in_id;
  CHECK(lines == deciding);
}

TEST_CASE("the id does not depend on order, origin or written form") {
  const std::string id =
      config_of("task = 'toy'\nseed = 3\n[model]\nembed_dim = 32\nposition = 'huang-m4(clip=8)'\n").id();
  CHECK(config_of("[model]\nposition = 'huang-m4(clip=8)'\nembed_dim = 32\n[train]\nsteps = 2000\n",
                  {"seed=3", "task=toy"})
            .id() == id);
  CHECK(config_of("task = 'toy'",
                  {"seed=3", "model.embed_dim=32", "model.position=[ huang-m4( beyond=clip, clip=8,) ]*2"})
            .id() == id);
  CHECK(config_of("task = 'toy'", {"seed=3", "model.embed_dim=32", "model.position=huang-m4(clip=8), huang-m4(clip=8)"})
            .id() == id);
  CHECK(config_of("task = 'toy()'", {"seed=3", "model.embed_dim=32", "model.position=huang-m4(clip=8)",
                                     "optim.optimizer=adamw(lr=0.001)", "model.dropout=0", "optim.clip_norm=1"})
            .id() == id);
  // Keys marked with a degree sign.
  CHECK(config_of("task = 'toy'",
                  {"seed=3", "model.embed_dim=32", "model.position=huang-m4(clip=8)", "name=x", "train.log_every=3",
                   "train.keep=4", "run.threads=2", "data.dir=/x", "log.jsonl=false"})
            .id() == id);
  CHECK(config_of("task = 'toy'", {"seed=4", "model.embed_dim=32", "model.position=huang-m4(clip=8)"}).id() != id);
}

TEST_CASE("a sum is unordered, and the rows of a learned table count although model.max_len does not") {
  const auto id = [](std::vector<std::string> settings) { return config_of("task = 'toy'", settings).id(); };
  CHECK(id({"model.position=rope + learned"}) == id({"model.position=learned + rope"}));
  CHECK(id({"model.max_len=64"}) == id({}));
  CHECK(id({"model.position=learned", "model.max_len=64"}) == id({"model.position=learned(max_len=64)"}));
  CHECK(id({"model.position=learned", "model.max_len=64"}) != id({"model.position=learned"}));
}

TEST_CASE("every key that decides the result changes the id") {
  // One accepted change per key; refused ones (features that are not built) are changed where the task allows it.
  const std::map<std::string, std::string> change{{"seed", "1"},
                                                  {"task", "toy(length=31)"},
                                                  {"data.seed", "1"},
                                                  {"data.train_size", "5"},
                                                  {"data.max_len", "40"},
                                                  {"data.shuffle", "false"},
                                                  {"data.drop_last", "true"},
                                                  {"model.embed_dim", "32"},
                                                  {"model.num_heads", "2"},
                                                  {"model.head_dim", "8"},
                                                  {"model.ffn_dim", "8"},
                                                  {"model.num_layers", "3"},
                                                  {"model.position", "rope"},
                                                  {"model.attention", "local(window=3)"},
                                                  {"model.norm", "post"},
                                                  {"model.norm_eps", "1e-6"},
                                                  {"model.activation", "relu"},
                                                  {"model.dropout", "0.1"},
                                                  {"model.attention_dropout", "0.1"},
                                                  {"model.embedding_dropout", "0.1"},
                                                  {"model.attention_bias", "false"},
                                                  {"model.ffn_bias", "false"},
                                                  {"model.head_bias", "false"},
                                                  {"optim.optimizer", "sgd(lr=1)"},
                                                  {"optim.schedule", "constant"},
                                                  {"optim.clip_norm", "2"},
                                                  {"optim.clip_value", "2"},
                                                  {"optim.accumulate", "2"},
                                                  {"optim.decay", "all"},
                                                  {"optim.no_decay", "['x']"},
                                                  {"optim.groups", "[{match='x'}]"},
                                                  {"train.steps", "100"},
                                                  {"train.epochs", "1"},
                                                  {"train.tokens", "1"},
                                                  {"train.batch_size", "8"},
                                                  {"train.micro_batch", "8"},
                                                  {"train.eval_every", "7"},
                                                  {"train.eval_batches", "7"},
                                                  {"train.eval_at_start", "true"},
                                                  {"train.select", "val.loss"},
                                                  {"train.patience", "3"},
                                                  {"run.precision", "f64"}};
  const std::string id = config_of("task = 'toy'").id();
  std::set<std::string> ids{id};
  for (const auto& item : change) {
    const std::string &key = item.first, &value = item.second;
    CAPTURE(key);
    CHECK(find_key(key)->in_id);
    const std::string other = config_of(key == "task" ? "" : "task = 'toy'", {key + "=" + value}).id();
    CHECK(ids.insert(other).second);
  }
}

TEST_CASE("config.toml repeats the run exactly") {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {},
           {"name=a \"b\" \\ c", "seed=9223372036854775807",
            "model.position=[rope]*1, learned + huang-m4(clip=3, beyond=zero)", "optim.no_decay=['a\"b', 'c']",
            "optim.groups=[{match='*', weight_decay=0.5, freeze=true}]", "model.norm_eps=1e-22", "train.minutes=3",
            "optim.schedule=constant", "data.dir=/tmp/\u00fc\t x", "optim.clip_value=1e22"},
           {"train.epochs=2.5", "run.threads=3", "train.save_every=7"}}) {
    const Config c = config_of("task = 'toy'", settings);
    const std::string toml = c.to_toml();
    CAPTURE(toml);
    const Config again = config_of(toml);
    CHECK(again.id() == c.id());
    CHECK(again.id_lines() == c.id_lines());
    for (const KeyInfo& key : config_keys()) CHECK(again.canonical(key.name) == c.canonical(key.name));
    CHECK(again.name() == c.name());
    CHECK(again.to_text().size() > 0);
    // Key for key the origin stands behind the value.
    CHECK(toml.find("# default\n") != std::string::npos);
    CHECK(toml.find("  # a.toml:1\n") != std::string::npos);
  }
}

TEST_CASE("the printed config shows what differs, with its origin") {
  const Config c = config_of("task = 'toy'\n[optim]\nclip_norm = 0.5\n", {"model.position=huang-m4"});
  CHECK(c.to_text() ==
        "  task              toy                       a.toml:1\n"
        "  model.position    huang-m4                  --set\n"
        "  optim.clip_norm   0.5                       a.toml:3\n");
  CHECK(c.to_text(true).find("\n  train.steps              2000                      default\n") != std::string::npos);
}

TEST_CASE("names are safe as folders") {
  const Config c = config_of("task = 'toy'", {"model.position=huang-m4"});
  CHECK(c.name() == "toy-huang-m4-dense-" + c.id().substr(0, 6));
  CHECK(config_of("task = 'toy'", {"model.position=learned+rope"}).name().rfind("toy-learned+rope-dense-", 0) == 0);
  CHECK(config_of("task = 'toy'", {"model.num_layers=4", "model.position=[rope]*3,none"})
            .name()
            .rfind("toy-rope3-none-dense-", 0) == 0);
  auto named = [](const std::string& name) { return config_of("task = 'toy'", {"name='" + name + "'"}).name(); };
  for (const std::string& name :
       {named("../../etc"), named(".."), named("-rf"), named("<script>"), named(""), named(std::string(10000, 'x')),
        config_of("task = 'toy'", {"name=\"a\\nb\""}).name()}) {
    CAPTURE(name);
    CHECK_FALSE(name.empty());
    CHECK(name.size() <= 100);
    CHECK(name.find_first_of("/<>\n\\") == std::string::npos);
    CHECK(name.find_first_of(".-") != 0);
  }
  CHECK(named("my run 1") != named("my run 2"));
}
