// The program as a user runs it: help, versions, unknown words, exit codes, streams.
#include <doctest/doctest.h>

#include "tests/train/cli/program.h"
#include "train/cli/help_topics.h"

using namespace waymark;
using test::Outcome;
using test::run_waymark;

TEST_CASE("waymark alone and --help print the commands; results go to stdout") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--help"}, {"-h"}, {"help"}}) {
    const Outcome o = run_waymark(words);
    CHECK(o.code == 0);
    CHECK(o.out.find("Usage: waymark COMMAND [OPTIONS]") != std::string::npos);
    CHECK(o.err.empty());
  }
  const Outcome v = run_waymark({"--version"});
  CHECK(v.code == 0);
  CHECK(v.out.rfind("waymark 0.", 0) == 0);
  CHECK(run_waymark({"help", "--version"}).out == v.out);
  CHECK(run_waymark({"help", "--help"}).out.find("Usage: waymark help") != std::string::npos);
}

TEST_CASE("a wrong request is exit code 2, on stderr, with a suggestion") {
  const Outcome command = run_waymark({"hepl"});
  CHECK(command.code == 2);
  CHECK(command.out.empty());
  CHECK(command.err == "waymark: unknown command hepl. Did you mean help? See waymark help.\n");
  CHECK(run_waymark({"--hepl"}).err == "waymark: unknown option --hepl. Did you mean --help? See waymark help.\n");
  const Outcome option = run_waymark({"help", "--colour", "never", "--threads", "0"});
  CHECK(option.code == 2);
  CHECK(option.err ==
        "waymark: 2 problems, nothing was read or written\n"
        "             unknown option --colour. Did you mean --color? See waymark help --help.\n"
        "  --threads  must be 1..4096 or auto, not 0\n");
  const Outcome topic = run_waymark({"help", "model.num_head"});
  CHECK(topic.code == 2);
  CHECK(topic.err.find("Did you mean model.num_heads") != std::string::npos);
}

TEST_CASE("hostile words are answered in one piece") {
  for (const std::string& word :
       {std::string(100000, 'x'), std::string("\x1b[2J\n"), std::string("\xff"), std::string("--")}) {
    const Outcome o = run_waymark({word});
    CHECK(o.code == 2);
    CHECK(o.err.size() < 300);
    CHECK(o.err.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("colours only when asked for, and NO_COLOR is obeyed") {
  CHECK(run_waymark({"help", "nosuchthing"}).err.find('\x1b') == std::string::npos);
  CHECK(run_waymark({"help", "nosuchthing", "--color", "always"}).err.find("\x1b[31mwaymark:\x1b[0m") == 0);
  CHECK(run_waymark({"help", "nosuchthing", "--color", "never"}).err.find('\x1b') == std::string::npos);
}

TEST_CASE("every topic and every name has a text") {
  for (const std::string& name : train::cli::help_topics()) {
    CAPTURE(name);
    const Outcome o = run_waymark({"help", name});
    CHECK(o.code == 0);
    CHECK(o.out.size() > 100);
  }
  for (const std::string& name : train::cli::topic_names()) {
    CAPTURE(name);
    const auto text = train::cli::topic_text(name);
    REQUIRE(text.has_value());
    CHECK(text->find(name) != std::string::npos);
  }
  for (const std::string& name : train::cli::op_names())
    CHECK(train::cli::op_topic(name)->find("schema") != std::string::npos);
  CHECK(run_waymark({"help", "op", "add"}).out.find("add(Tensor input, Tensor other") != std::string::npos);
  CHECK(run_waymark({"help", "model.embed_dim"}).out.find("[64]") != std::string::npos);
}
