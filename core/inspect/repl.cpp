#include "core/inspect/repl.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>

#include "core/inspect/stepper.h"
#include "core/inspect/terminal.h"

namespace waymark::inspect {
namespace {

int width_of_output() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::clamp<int>(size.ws_col, 40, 400);
  if (const char* columns = std::getenv("COLUMNS"))
    if (const int n = std::atoi(columns); n > 0) return std::clamp(n, 40, 400);
  return 80;
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

ReplIo terminal_io() {
  ReplIo io;
  io.write = write_out;
  io.width = width_of_output();
  io.columns = width_of_output;
  io.person = isatty(STDIN_FILENO) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  io.bold = isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) && !(terminal && std::string_view(terminal) == "dumb");
  if (io.person && isatty(STDOUT_FILENO) == 1) {
    io.read = [](const std::vector<std::string>& words) { return edited_line("(waymark) ", words); };
  } else {
    io.read = [](const std::vector<std::string>&) { return plain_line(); };
  }
  if (io.person) io.interrupted = interrupt_came;
  return io;
}

ReplIo script_io(const std::string& path) {
  const auto file = std::make_shared<std::ifstream>(path);
  if (!*file) fail("", "cannot read the script {}", path);
  ReplIo io;
  io.strict = true;
  io.write = write_out;
  io.width = width_of_output();
  io.read = [file](const std::vector<std::string>&) -> std::optional<std::string> {
    std::string line;
    if (!std::getline(*file, line)) return std::nullopt;
    return line;
  };
  return io;
}

std::string run_summary(const BackwardRun& run) {
  std::string loss = "-";
  if (!run.roots().empty() && run.roots()[0].numel() == 1) loss = fmt::format("{:.6g}", run.roots()[0].item<double>());
  i64 saved = 0, elements = 0, tensors = 0;
  std::set<const Storage*> storages;
  for (const Node* n : run.nodes())
    for (const Saved& s : n->saved)
      if (s.data && storages.insert(s.data->storage.get()).second) saved += s.data->storage->bytes();
  for (const Tensor& t : run.leaves()) {
    elements += t.numel();
    ++tensors;
  }
  return fmt::format("loss {}   {} nodes   {} saved   {} parameters in {} tensors", loss, run.total(), bytes_text(saved), elements, tensors);
}

int repl(BackwardRun& run, ReplIo io) {
  std::optional<PersonGuard> guard;
  if (io.person) guard.emplace();
  Stepper stepper(run, io);
  const std::vector<std::string> words = stepper.words();
  while (true) {
    const std::optional<std::string> line = io.read(words);
    if (io.columns) io.width = io.columns();
    if (!line) {
      if (io.person) io.write("\n");
      return 0;
    }
    if (io.person) take_interrupts();
    const Stepper::Outcome outcome = stepper.execute(*line);
    if (outcome == Stepper::Outcome::quit) return 0;
    if (io.person) continue;
    // A script that goes on after a failure would hide it.
    if (outcome == Stepper::Outcome::unmet || (io.strict && outcome != Stepper::Outcome::done)) return 1;
  }
}

}  // namespace waymark::inspect
