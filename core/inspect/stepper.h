// Internal: the commands of the stepper, without input and output.
#pragma once

#include <map>

#include "core/inspect/recorder.h"
#include "core/inspect/repl.h"

namespace waymark::inspect {

class Stepper {
 public:
  Stepper(BackwardRun& run, ReplIo& io);
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // One command line. Errors are written, not thrown.
  enum class Outcome : u8 { done, failed, unmet, unknown, quit };  // unmet: an expectation
  Outcome execute(const std::string& line);
  // Commands, ops, scopes and names of tensors, for completion.
  std::vector<std::string> words() const;

 private:
  struct Command {
    std::string name, shortcut, arguments, help, details;
    void (Stepper::*run)(const std::string& argument);
  };
  static const std::vector<Command>& commands();
  static const Command* find(const std::string& word);

  // stepper_move.cpp
  void step(const std::string& argument);
  void back(const std::string& argument);
  void go_to(const std::string& argument);
  void end(const std::string& argument);
  void next_module(const std::string& argument);
  void finish_module(const std::string& argument);
  void until(const std::string& argument);
  void rewind_to(i64 k);
  // Steps while `more` holds for the next node; says where it stands then.
  void run_while(const std::function<bool(const Node&)>& more);
  void say_position();

  // stepper_show.cpp
  void card(const std::string& argument);
  void in(const std::string& argument);
  void out(const std::string& argument);
  void saved(const std::string& argument);
  void hooks(const std::string& argument);
  void print(const std::string& argument);
  void stats(const std::string& argument);
  void why(const std::string& argument);
  void tree(const std::string& argument);
  void bytes(const std::string& argument);
  void check(const std::string& argument);
  void help(const std::string& argument);
  void quit(const std::string& argument);

  // stepper_values.cpp
  void expect(const std::string& argument);
  // A tensor by what a user calls it: see `help print`. Error that suggests others.
  CardTensor lookup(const std::string& name) const;
  std::string full_name(const std::string& name) const;
  Tensor values_of(const CardTensor& t, const std::string& name) const;
  // A number or a word, for expect: "norm(grad(W))", "op", "3". A word that says what something is called, as opposed
  // to op, scope and check, which ask for it, is only known beside one of these.
  struct Quantity {
    bool is_number = false;
    double number = 0;
    std::string word;
    std::string asked;  // "op", "scope", "check"; empty: `word` is just this
  };
  // Error unless what is asked for could be called so.
  void check_word(const std::string& asked, const std::string& word) const;
  Quantity quantity(const std::string& text) const;

  const NodeCard& current() const;  // with its check; Error before the first step
  bool interrupted() const { return io_.interrupted && io_.interrupted(); }
  void say(std::string_view text) { io_.write(text); io_.write("\n"); }

  BackwardRun& run_;
  ReplIo& io_;
  std::unique_ptr<Recorder> own_;   // where no recorder was in force
  std::shared_ptr<const Trace> trace_;  // the recorder's, also once a hook has ended that
  std::map<u64, NodeCheck> checks_;  // by node
  mutable NodeCard shown_;
  u64 stopped_at_ = 0;               // node before which `until` halted
  bool quit_ = false;
};

}  // namespace waymark::inspect
