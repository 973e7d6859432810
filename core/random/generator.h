// The generator: a seed, and how many draws each named stream has given.
//
//   manual_seed(7);
//   Draw d = next_draw("encoder.layers.0.attention.q_proj.weight.init");
//   fill_normal(d, draw_grid(d, shape), 0, n, out);
//
// There is one generator per process, under a lock. A RandomScope puts another one in its place on its thread, a
// DrawScope sets the numbers of dropout draws. Draws are taken before a parallel region, not inside: the scopes
// belong to the thread that made them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/random/draws.h"
#include "core/random/playback.h"

namespace waymark {

// What a checkpoint keeps. Streams that were never asked are absent.
struct GeneratorState {
  u64 seed = 0;
  std::map<std::string, u64> counts;
  bool operator==(const GeneratorState&) const = default;
};

// Whether axis 0 of a draw is the batch (DrawScope adds its first item to it).
enum class BatchAxis : bool { no, yes };

class WAYMARK_API Generator {
 public:
  explicit Generator(u64 seed = 0) : seed_(seed) {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  u64 seed() const;
  // Sets the seed and clears all counts.
  void manual_seed(u64 seed);

  // The next draw of a stream: numbered by the stream's count, 2^32 at most (Error). Inside a DrawScope a dropout
  // stream ("dropout" or "<path>.dropout") is numbered by the scope and the count stays.
  Draw next_draw(std::string_view stream);
  // A draw whose number is fixed by its rule (an epoch, a step, an item). Advances nothing.
  Draw fixed_draw(std::string_view stream, u64 number, BatchAxis batch = BatchAxis::no);

  u64 count(std::string_view stream) const;
  GeneratorState state() const;
  void set_state(const GeneratorState& state);

  // Captures the draws of these streams from now on (of all, if none is named); forgets an earlier capture.
  void start_capture(std::vector<std::string> streams = {});
  // What was captured; ends the capture.
  std::vector<NamedDraw> take_captured();

  // The next draws of the stream are these, in this order. A stream that is already injected: Error.
  void inject(std::string_view stream, std::vector<DrawBuffer> draws, InjectMode mode = InjectMode::once);
  // By name, as in a case file.
  void inject(std::vector<NamedDraw> draws, InjectMode mode = InjectMode::once);
  // Ends all injection; draws that were not played (mode once) are an Error.
  void finish_injection();
  void clear_injection();

 private:
  friend class RandomSnapshot;
  friend class ReplayScope;
  Draw make_draw(std::string_view stream, u32 number, u64 first);  // under the lock

  mutable std::mutex mutex_;
  u64 seed_;
  std::map<std::string, u64, std::less<>> counts_;
  std::map<std::string, InjectedStream, std::less<>> injected_;
  std::shared_ptr<CaptureLog> log_;
};

// The process's generator (seed 0 at first), and the one in force on this thread.
WAYMARK_API Generator& default_generator();
WAYMARK_API Generator& current_generator();

// The same on current_generator().
WAYMARK_API void manual_seed(u64 seed);
WAYMARK_API Draw next_draw(std::string_view stream);
WAYMARK_API Draw fixed_draw(std::string_view stream, u64 number, BatchAxis batch = BatchAxis::no);

// Until its end, this thread draws from a fresh generator, or from one of the caller's.
class WAYMARK_API RandomScope {
 public:
  explicit RandomScope(u64 seed);
  explicit RandomScope(Generator& generator);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  std::unique_ptr<Generator> own_;
  Generator* outer_;
};

// One pass of a model over the items first, first + 1, ... of step `draw`. Dropout streams asked inside it on this
// thread get the number 1024 draw + c, c = how often that stream was asked before in this scope (c < 1024, else
// Error), and count their axis 0 from `first`: micro-batches have the masks of the whole batch. Scopes nest; the
// innermost counts. Errors: draw >= 2^22, first >= 2^32.
class WAYMARK_API DrawScope {
 public:
  explicit DrawScope(u64 draw, u64 first = 0);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  // The draw (step) and first item of the innermost scope on this thread, for rules that fix their numbers by it.
  struct Place {
    u64 draw, first;
  };
  static std::optional<Place> current();

 private:
  friend class Generator;
  friend class RandomSnapshot;
  friend class ReplayScope;
  u64 draw_, first_;
  std::map<std::string, u32, std::less<>> counts_;
  DrawScope* outer_;
};

// "dropout" or "<path>.dropout".
WAYMARK_API bool is_dropout_stream(std::string_view stream);

// All that decides the next draws of this thread: seed, counts, DrawScope, place in the injected draws.
class WAYMARK_API RandomSnapshot {
 public:
  RandomSnapshot();  // of now, on this thread

 private:
  friend class ReplayScope;
  u64 seed_;
  std::map<std::string, u64, std::less<>> counts_;
  std::map<std::string, InjectedStream, std::less<>> injected_;
  struct ScopeState {
    u64 draw, first;
    std::map<std::string, u32, std::less<>> counts;
  };
  std::optional<ScopeState> scope_;
};

// Until its end, this thread draws again what it drew after the snapshot (a checkpoint's recomputation, on whatever
// thread). Nothing is advanced or captured outside: the streams are as they were when it ends.
class WAYMARK_API ReplayScope {
 public:
  explicit ReplayScope(const RandomSnapshot& snapshot);
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

 private:
  Generator generator_;
  std::optional<DrawScope> scope_;
  Generator* outer_;
  DrawScope* outer_scope_;
};

}  // namespace waymark
