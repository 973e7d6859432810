// Precedence, defaults, types, rules between keys, and all problems at once.
#include <doctest/doctest.h>

#include "tests/train/config/fixture.h"
#include "train/config/checks.h"

using namespace waymark;
using namespace waymark::train;
using test::config_of;
using test::problems_of;

TEST_CASE("defaults, also those that depend on other keys and on the task") {
  const Config c = config_of("task = 'toy(length=48)'");
  CHECK(c.integer("seed") == 0);
  CHECK(c.integer("model.embed_dim") == 64);
  CHECK(c.integer("model.head_dim") == 16);
  CHECK(c.integer("model.ffn_dim") == 256);
  CHECK(c.integer("data.max_len") == 48);
  CHECK(c.integer("model.max_len") == 48);
  CHECK(c.text("model.kind") == "encoder");
  CHECK_FALSE(c.boolean("model.causal"));
  CHECK(c.integer("train.steps") == 2000);
  CHECK(c.integer("train.eval_every") == 200);
  CHECK(c.integer("train.save_every") == 200);
  CHECK(c.text("train.select") == "val.accuracy");
  CHECK(c.real("model.embedding_dropout") == 0);
  CHECK(c.spec("optim.optimizer").real("lr") == 1e-3);
  CHECK(c.spec("optim.schedule").real("warmup") == 100);
  CHECK(c.is_word("run.threads", "auto"));
  CHECK(c.layers("model.position").size() == 2);
  CHECK(c.layers("model.position")[1][0].name() == "none");
  CHECK(c.texts("optim.no_decay").empty());
  CHECK(c.groups().empty());
  CHECK(c.sum("train.regularizer")[0].name() == "none");
  CHECK(c.origin("train.steps") == "default");
  CHECK(c.origin("task") == "a.toml:1");

  const Config d =
      config_of("task = 'toy'", {"model.embed_dim=24", "model.num_heads=3", "model.dropout=0.25", "train.steps=45"});
  CHECK(d.integer("model.head_dim") == 8);
  CHECK(d.integer("model.num_kv_heads") == 3);
  CHECK(d.integer("model.head_hidden") == 96);
  CHECK(d.real("model.embedding_dropout") == 0.25);
  CHECK(d.integer("train.eval_every") == 4);
}

TEST_CASE("the later source wins, tables merge, arrays replace") {
  const Config c = config_of("task = 'toy'\n[model]\nembed_dim = 32\nnum_heads = 2\n[optim]\nno_decay = ['a', 'b']\n",
                             {"model.embed_dim=16", "optim.no_decay=['c']"});
  CHECK(c.integer("model.embed_dim") == 16);
  CHECK(c.origin("model.embed_dim") == "--set");
  CHECK(c.integer("model.num_heads") == 2);
  CHECK(c.origin("model.num_heads") == "a.toml:4");
  CHECK(c.texts("optim.no_decay") == std::vector<std::string>{"c"});

  Problems problems;
  const std::vector<Source> sources{read_toml_text("task = 'toy'\nseed = 1\ndata.seed = 5", "a.toml", problems),
                                    read_toml_text("seed = 2", "b.toml", problems)};
  const auto config = resolve_config(sources, problems, test::small_registries());
  REQUIRE(config.has_value());
  CHECK(config->integer("seed") == 2);
  CHECK(config->origin("seed") == "b.toml:1");
  CHECK(config->integer("data.seed") == 5);
}

TEST_CASE("five planted problems give five lines") {
  const test::Attempt a = test::attempt(
      "task = 'toy'\n[model]\nnum_head = 8\nembed_dim = 100\nnum_heads = 8\nposition = 'roep'\n[train]\nbatch_size = "
      "'32'\n",
      {"model.activation=rleu"});
  CHECK(problems_text(a.problems) ==
        "5 problems, nothing was read or written\n"
        "  a.toml:3  model.num_head = 8: unknown key. Did you mean model.num_heads?\n"
        "  --set     model.activation = \"rleu\": must be gelu | gelu_tanh | relu | silu, not text \"rleu\". Did you "
        "mean "
        "relu or gelu?\n"
        "  a.toml:8  train.batch_size = \"32\": must be int 1..16777216, not text \"32\"\n"
        "  a.toml:6  model.position: unknown position encoding roep. Did you mean rope?\n"
        "  a.toml:4  model.embed_dim = 100 is not divisible by model.num_heads = 8");
}

TEST_CASE("type slips are refused with the expected type") {
  const std::string task = "task = 'toy'\n";
  CHECK(problems_of(task + "model.num_heads = '8'") ==
        "a.toml:2|model.num_heads = \"8\": must be int 1..1048576, not text \"8\"\n");
  CHECK(problems_of(task, {"train.steps=1e3"}) ==
        "--set|train.steps = 1000.0: must be int 1..4194303, not float 1000.0\n");
  CHECK(problems_of(task + "model.causal = 'yes'") ==
        "a.toml:2|model.causal = \"yes\": must be bool (true or false), not text \"yes\"\n");
  CHECK(problems_of(task, {"model.causal=1"}) == "--set|model.causal = 1: must be bool (true or false), not int 1\n");
  CHECK(problems_of(task + "model.position = 3") ==
        "a.toml:2|model.position = 3: must be text, as in model.position = \"none\"\n");
  CHECK(problems_of(task + "model.position = ['rope']").find("must be text") != std::string::npos);
  CHECK(problems_of(task + "seed = -1") == "a.toml:2|seed = -1: must be int >= 0, not int -1\n");
  CHECK(problems_of(task + "seed = 1979-05-27") == "a.toml:2|seed = 1979-05-27: must be int >= 0, not a date or a time\n");
  CHECK(problems_of(task + "seed.x = 1") == "a.toml:2|seed = {...}: must be int >= 0, not a table\n");
  CHECK(problems_of(task + "foo = {}\n[modle]\n[model]\n")
            .find("a.toml:2|foo = {...}: unknown key.\na.toml:3|modle = {...}: unknown key.") == 0);
  CHECK(problems_of(task + "seed = {}") == "a.toml:2|seed = {...}: must be int >= 0, not a table\n");
  CHECK(problems_of(task + "model.dropout = 1.0").find("must be float >= 0 and < 1") != std::string::npos);
  CHECK(problems_of(task + "model.dropout = nan").find("must be float >= 0 and < 1") != std::string::npos);
  CHECK(problems_of(task + "model.norm_eps = 0").find("must be float 1e-30..1") != std::string::npos);
  CHECK(problems_of(task + "optim.no_decay = [1]").find("must be list of words") != std::string::npos);
  CHECK(problems_of(task + "train.steps = 4194304").find("must be int 1..4194303") != std::string::npos);
  CHECK(problems_of(task + "optim.clip_norm = 1").empty());  // an int is a float
  CHECK(problems_of("task = 'toy(length=1.0)'") ==
        "a.toml:1|task: toy: option length must be int 1..4096, not float 1.0\n");
  CHECK(problems_of("", {"task=toy", std::string("name=\xff")}).find("is no UTF-8 text") != std::string::npos);
}

TEST_CASE("unknown keys are suggested for: same table, other tables, other programs") {
  auto hint = [](const std::string& key) { return suggest_key(key); };
  CHECK(hint("model.num_head") == " Did you mean model.num_heads?");
  CHECK(hint("optim.dropout") == " Did you mean model.dropout?");
  CHECK(hint("models.embed_dim") == " Did you mean model.embed_dim?");
  CHECK(hint("lr") == " Did you mean optim.optimizer(lr=)?");
  CHECK(hint("optim.learning_rate") == " Did you mean optim.optimizer(lr=)?");
  CHECK(hint("model.d_model") == " Did you mean model.embed_dim?");
  CHECK(hint("model.depth") == " Did you mean model.num_layers?");
  CHECK(hint("train.warmup") == " Did you mean optim.schedule(warmup=)?");
  CHECK(hint("train.max_steps") == " Did you mean train.steps?");
  CHECK(hint("random_seed") == " Did you mean seed?");
  CHECK(hint("model.position_embedding_type") == " Did you mean model.position?");
  CHECK(hint("model.qqqqqqqqqqqq").empty());
}

TEST_CASE("specs are read by their registries; errors of the grammar show the column") {
  const Config c = config_of(
      "task = 'toy'\n[model]\nnum_layers = 4\nposition = '[rope(base=5e4)]*3, none + learned'\n"
      "attention = '[dense]*3, dense'\n");
  CHECK(c.layers("model.position")[2][0].real("base") == 50000);
  CHECK(c.layers("model.position")[3].size() == 2);
  CHECK(c.short_form("model.position") == "[rope(base=50000)]*3, none + learned(max_len=32)");
  CHECK(c.short_form("model.attention") == "dense");
  CHECK(config_of("task='toy'", {"model.attention=dense,local(window=8)"})
            .layers("model.attention")[1][0]
            .integer("window") == 8);
  const std::string task = "task = 'toy'\n";
  CHECK(problems_of(task, {"model.position=huang-m4(clip=16"}) ==
        "--set|model.position: expected ')' or ',', found the end at column 17\n  huang-m4(clip=16\n                  "
        "^\n");
  CHECK(problems_of(task, {"model.position=rope,rope,rope"}) ==
        "--set|model.position: the pattern has 3 items, but model.num_layers = 2\n");
  CHECK(problems_of(task, {"model.position=[huang-m4(clip=x, foo=1)]*2"}) ==
        "--set|model.position: huang-m4: unknown option foo. It has clip, beyond.\n"
        "--set|model.position: huang-m4: option clip must be int 0..1048576, not word x\n");
  CHECK(problems_of(task, {"model.attention=dense + dense"}).find("appears twice in the sum") != std::string::npos);
  CHECK(problems_of(task, {"model.attention=dense + local(window=2)"}).find("a layer has one attention") !=
        std::string::npos);
  CHECK(problems_of(task, {"model.attention=local"}) ==
        "--set|model.attention: local: option window must be given (int >= 1)\n");
  CHECK(problems_of(task, {"optim.optimizer=adam"}) ==
        "--set|optim.optimizer: unknown optimizer adam. Did you mean adamw?\n");
  CHECK(problems_of(task, {"optim.optimizer=sgd"}) ==
        "--set|optim.optimizer: sgd: option lr must be given (float > 0)\n");
  CHECK(problems_of(task, {"train.regularizer=sar(weight=1)"}) ==
        "--set|train.regularizer = sar(weight=1): this version has none\n");
  CHECK(problems_of(task, {"preset=tiny"}) == "--set|preset = \"tiny\": must be none, not text \"tiny\"\n");
  CHECK(problems_of(task, {"model.attention=local(window=2)", "model.position=rope"}) ==
        "--set|rope cannot run on local: a test rule\n");
  CHECK(problems_of("") ==
        "|task must be given: --task NAME, or task = \"NAME\" in a file. Known: toy, choice, next.\n");
}

TEST_CASE("exactly one of steps, epochs, tokens, minutes") {
  const Config epochs = config_of("task = 'toy'\ntrain.epochs = 2");
  CHECK_FALSE(epochs.has("train.steps"));
  CHECK(epochs.real("train.epochs") == 2);
  CHECK(epochs.is_word("train.eval_every", "auto"));
  CHECK_THROWS_AS(epochs.integer("train.steps"), Error);
  CHECK(problems_of("task = 'toy'\n[train]\nsteps = 5\nminutes = 2")
            .find("train.steps and train.minutes are both given") != std::string::npos);
  // A later source replaces the earlier choice: otherwise a saved config could never be run by time.
  const Config later = config_of("task = 'toy'\ntrain.steps = 5", {"train.minutes=0.5", "optim.schedule=constant"});
  CHECK_FALSE(later.has("train.steps"));
  CHECK(later.real("train.minutes") == 0.5);
  CHECK(problems_of("task = 'toy'", {"train.minutes=0.5"})
            .find("--set|optim.schedule = cosine(warmup=100) must know the number") == 0);
}

TEST_CASE("rules between keys") {
  const std::string task = "task = 'toy'\n";
  CHECK(problems_of(task, {"optim.accumulate=2", "train.micro_batch=8"}).find("set at most one") != std::string::npos);
  CHECK(problems_of(task, {"optim.accumulate=3"}) ==
        "--set|train.batch_size = 32 is not divisible by optim.accumulate = 3\n");
  CHECK(problems_of(task, {"train.micro_batch=33"}) == "--set|train.micro_batch = 33 exceeds train.batch_size = 32\n");
  CHECK(problems_of(task, {"model.head_dim=5", "model.num_heads=3"}).empty());
  CHECK(problems_of(task, {"train.select=test.accuracy"}).find("never chosen by a test value") != std::string::npos);
  CHECK(problems_of(task, {"train.select=val.f1"}) ==
        "--set|train.select = val.f1: the task measures accuracy, loss.\n");
  CHECK(problems_of(task, {"train.select=last", "train.patience=2"}).find("needs a validation metric") !=
        std::string::npos);
  CHECK(problems_of(task, {"data.split=official"}) ==
        "--set|data.split = official: the task has own\n--set|data.split = official has no effect: toy does not use "
        "it\n");
  CHECK(problems_of("task = 'toy(test_lengths=[64,128])'", {"model.position=learned"}) ==
        "--set|learned has 32 rows, but the task needs 128 positions: write learned(max_len=128)\n");
  CHECK(problems_of("task = 'toy(test_lengths=[64,128])'", {"model.position=learned(max_len=128)"}).empty());
  CHECK(problems_of("task = 'toy(test_lengths=[64,128])'", {"model.position=learned", "model.max_len=128"}).empty());
  CHECK(problems_of("task = 'next'").find("decoders and towers are not part of this version") != std::string::npos);
  CHECK(problems_of("task = 'next'", {"model.causal=false"}).find("which the model would see") != std::string::npos);
  // A rule is not asked where one of its keys is wrong already.
  CHECK(problems_of(task, {"model.num_heads=x", "model.embed_dim=65"}) ==
        "--set|model.num_heads = \"x\": must be int 1..1048576, not text \"x\"\n");
}

TEST_CASE("nothing is silently ignored") {
  const std::string task = "task = 'toy'\n";
  CHECK(problems_of(task, {"log.tensorboard=true"}) ==
        "--set|log.tensorboard = true: TensorBoard files are not part of this version\n");
  CHECK(problems_of(task, {"log.tensorboard=false"}).empty());
  CHECK(problems_of(task, {"model.pooling=cls"}) ==
        "--set|model.pooling = cls has no effect: toy does not pool a sequence\n");
  CHECK(problems_of("task = 'choice'", {"model.pooling=cls", "model.cls_position=none"}).empty());
  CHECK(problems_of("task = 'choice'", {"model.cls_position=none"}).find("model.pooling is not cls") !=
        std::string::npos);
  CHECK(problems_of(task, {"data.truncate=true"}) == "--set|data.truncate = true has no effect: toy does not use it\n");
  CHECK(problems_of(task, {"data.cache=zz"}) == "--set|data.cache = zz has no effect: toy does not use it\n");
  CHECK(problems_of(task, {"data.drop_last=true"}).empty());
  CHECK(problems_of(task, {"model.num_kv_heads=2"}).empty());
  CHECK(problems_of(task, {"model.norm_type=rms", "model.activation=silu", "model.scale=0.5"}).empty());
  CHECK(problems_of(task, {"model.num_kv_heads=4"}).empty());
}

TEST_CASE("a length of tables without a table is told, not refused: another cell of a sweep may have one") {
  const std::string task = "task = 'toy'\n";
  CHECK(problems_of(task, {"model.max_len=64"}).empty());
  const auto unused = unused_settings(config_of(task, {"model.max_len=64"}));
  REQUIRE(unused.size() == 1);
  CHECK(unused[0].rfind("model.max_len = 64 has no effect", 0) == 0);
  CHECK(unused_settings(config_of(task)).empty());
  CHECK(unused_settings(config_of(task, {"model.max_len=64", "model.position=learned"})).empty());
}

TEST_CASE("help marks what a key cannot do in this version") {
  CHECK(limit_note("model.kind") == "this version: only encoder");
  CHECK(limit_note("model.init_from") == "not part of this version");
  CHECK(limit_note("data.mask_zero_pixels") == "no task of this version uses it");
  CHECK(limit_note("data.drop_last") == "");
  CHECK(limit_note("model.embed_dim") == "");
}

TEST_CASE("optim.groups is a list of tables") {
  const Config c = config_of(
      "task = 'toy'\noptim.groups = [{match = '*.bias', lr_scale = 2}, {match = 'x', weight_decay = 0, freeze = "
      "true}]");
  REQUIRE(c.groups().size() == 2);
  CHECK(c.groups()[0].match == "*.bias");
  CHECK(c.groups()[0].lr_scale == 2);
  CHECK_FALSE(c.groups()[0].weight_decay.has_value());
  CHECK(c.groups()[1].weight_decay == 0.0);
  CHECK(c.groups()[1].freeze);
  const std::string problems = problems_of("task = 'toy'\noptim.groups = [{mach = '*', lr_scale = -1}]");
  CHECK(problems ==
        "a.toml:2|optim.groups[0]: group: unknown option mach. Did you mean match?\n"
        "a.toml:2|optim.groups[0]: group: option match must be given (text)\n"
        "a.toml:2|optim.groups[0]: group: option lr_scale must be float >= 0, not int -1\n");
  CHECK(problems_of("task = 'toy'\noptim.groups = 3").find("must be a list of tables") != std::string::npos);
  CHECK(problems_of("task = 'toy'\noptim.groups = []").empty());
}

TEST_CASE("the format of a saved config is checked") {
  CHECK(problems_of("format = 'waymark-config-1'\ntask = 'toy'").empty());
  CHECK(problems_of("format = 'waymark-config-2'\ntask = 'toy'") ==
        "a.toml:1|format = \"waymark-config-2\": this version reads \"waymark-config-1\"\n");
}

TEST_CASE("getters refuse wrong names and types") {
  const Config c = config_of("task = 'toy'");
  CHECK_THROWS_WITH_AS(c.integer("train.step"),
                       "config: there is no key train.step. Did you mean train.steps or train.keep?", Error);
  CHECK_THROWS_AS(c.integer("model.dropout"), Error);
  CHECK_THROWS_AS(c.real("model.position"), Error);
  CHECK_THROWS_AS(c.spec("model.position"), Error);
  CHECK_THROWS_AS(c.integer("run.threads"), Error);  // it is the word auto
  CHECK_THROWS_AS(c.text("seed"), Error);
  CHECK_THROWS_AS(Config().integer("seed"), Error);
  CHECK(c.value("seed") == nn::SpecValue(0));
  CHECK(c.value("task") == nn::SpecValue("toy"));
}
