#include "core/random/generator.h"

#include <utility>

#include "core/tensor/error.h"

namespace waymark {

namespace {

constexpr u64 kDrawsPerScope = 1024;

thread_local Generator* current_on_thread = nullptr;
thread_local DrawScope* scope_on_thread = nullptr;

// The entry of a stream, made if it is new; looks up without building a string.
template <class Map> auto& entry(Map& map, std::string_view stream) {
  const auto found = map.find(stream);
  return found != map.end() ? found->second : map[std::string(stream)];
}

}  // namespace

bool is_dropout_stream(std::string_view stream) {
  constexpr std::string_view kName = "dropout";
  return stream.ends_with(kName) &&
         (stream.size() == kName.size() || stream[stream.size() - kName.size() - 1] == '.');
}

// ---- Generator ------------------------------------------------------------------------------------------------------

u64 Generator::seed() const {
  const std::lock_guard lock(mutex_);
  return seed_;
}

void Generator::manual_seed(u64 seed) {
  const std::lock_guard lock(mutex_);
  seed_ = seed;
  counts_.clear();
}

Draw Generator::make_draw(std::string_view stream, u32 number, u64 first) {
  Draw draw;
  draw.key = key64(seed_, stream);
  draw.number = number;
  draw.first = first;
  const bool captured = log_ && log_->wants(stream);
  const auto injected = injected_.find(stream);
  if (!captured && injected == injected_.end()) return draw;
  auto tap = std::make_shared<DrawTap>();
  tap->stream = stream;
  if (injected != injected_.end()) std::tie(tap->injected, tap->injected_index) = injected->second.ask(number, first);
  if (captured) {
    tap->log = log_;
    tap->log_index = log_->ask(tap->stream, number, first);
  }
  draw.tap = std::move(tap);
  return draw;
}

Draw Generator::next_draw(std::string_view stream) {
  const std::lock_guard lock(mutex_);
  DrawScope* scope = scope_on_thread;
  if (scope && is_dropout_stream(stream)) {
    u32& asked = entry(scope->counts_, stream);
    if (asked >= kDrawsPerScope)
      fail("random", "stream '{}' was asked {} times inside one DrawScope, which is the most it can number", stream,
           kDrawsPerScope);
    const Draw draw = make_draw(stream, static_cast<u32>(kDrawsPerScope * scope->draw_ + asked), scope->first_);
    ++asked;
    return draw;
  }
  u64& count = entry(counts_, stream);
  if (count >= kDrawLimit)
    fail("random", "stream '{}' has given all its 2^32 draws; manual_seed() starts it again", stream);
  const Draw draw = make_draw(stream, static_cast<u32>(count), 0);
  ++count;
  return draw;
}

Draw Generator::fixed_draw(std::string_view stream, u64 number, BatchAxis batch) {
  if (number >= kDrawLimit) fail("random", "draw number {} of stream '{}' must be below 2^32", number, stream);
  const u64 first = batch == BatchAxis::yes && scope_on_thread ? scope_on_thread->first_ : 0;
  const std::lock_guard lock(mutex_);
  return make_draw(stream, static_cast<u32>(number), first);
}

u64 Generator::count(std::string_view stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(stream);
  return found == counts_.end() ? 0 : found->second;
}

GeneratorState Generator::state() const {
  const std::lock_guard lock(mutex_);
  GeneratorState state;
  state.seed = seed_;
  for (const auto& [stream, count] : counts_)
    if (count > 0) state.counts.emplace(stream, count);
  return state;
}

void Generator::set_state(const GeneratorState& state) {
  for (const auto& [stream, count] : state.counts)
    if (count > kDrawLimit) fail("random", "the state gives stream '{}' {} draws; at most 2^32 exist", stream, count);
  const std::lock_guard lock(mutex_);
  seed_ = state.seed;
  counts_ = {state.counts.begin(), state.counts.end()};
}

void Generator::start_capture(std::vector<std::string> streams) {
  auto log = std::make_shared<CaptureLog>(std::move(streams));
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
}

std::vector<NamedDraw> Generator::take_captured() {
  std::shared_ptr<CaptureLog> log;
  {
    const std::lock_guard lock(mutex_);
    log = std::exchange(log_, nullptr);
  }
  if (!log) fail("capture", "nothing is being captured; call start_capture() before the draws");
  return log->draws();
}

void Generator::inject(std::string_view stream, std::vector<DrawBuffer> draws, InjectMode mode) {
  InjectedStream injected(std::string(stream), std::move(draws), mode);
  const std::lock_guard lock(mutex_);
  if (!injected_.emplace(stream, std::move(injected)).second)
    fail("inject", "stream '{}' is injected already; finish_injection() or clear_injection() first", stream);
}

void Generator::inject(std::vector<NamedDraw> draws, InjectMode mode) {
  std::map<std::string, InjectedStream, std::less<>> all;
  for (auto& [stream, buffers] : draws_by_stream(std::move(draws)))
    all.emplace(stream, InjectedStream(stream, std::move(buffers), mode));
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, injected] : all)
    if (injected_.count(stream) > 0)
      fail("inject", "stream '{}' is injected already; finish_injection() or clear_injection() first", stream);
  injected_.merge(all);
}

void Generator::finish_injection() {
  std::map<std::string, InjectedStream, std::less<>> injected;
  {
    const std::lock_guard lock(mutex_);
    injected.swap(injected_);
  }
  std::string unused;
  for (const auto& [stream, draws] : injected)
    for (std::size_t i = draws.size() - draws.left_over(); i < draws.size(); ++i)
      unused += (unused.empty() ? "" : ", ") + draw_name(stream, i);
  if (!unused.empty()) fail("inject", "these draws were injected and never asked for: {}", unused);
}

void Generator::clear_injection() {
  const std::lock_guard lock(mutex_);
  injected_.clear();
}

// ---- The generators in force ----------------------------------------------------------------------------------------

Generator& default_generator() {
  static Generator* const generator = new Generator;  // never destroyed: threads may still draw at exit
  return *generator;
}

Generator& current_generator() { return current_on_thread ? *current_on_thread : default_generator(); }

void manual_seed(u64 seed) { current_generator().manual_seed(seed); }
Draw next_draw(std::string_view stream) { return current_generator().next_draw(stream); }
Draw fixed_draw(std::string_view stream, u64 number, BatchAxis batch) {
  return current_generator().fixed_draw(stream, number, batch);
}

RandomScope::RandomScope(u64 seed) : own_(std::make_unique<Generator>(seed)), outer_(current_on_thread) {
  current_on_thread = own_.get();
}
RandomScope::RandomScope(Generator& generator) : outer_(std::exchange(current_on_thread, &generator)) {}
RandomScope::~RandomScope() { current_on_thread = outer_; }

DrawScope::DrawScope(u64 draw, u64 first) : draw_(draw), first_(first), outer_(scope_on_thread) {
  if (draw >= kDrawLimit / kDrawsPerScope)
    fail("DrawScope", "draw {} must be below 4194304, so that 1024 draw numbers of it stay below 2^32", draw);
  if (first >= kDrawLimit) fail("DrawScope", "first item {} must be below 2^32", first);
  scope_on_thread = this;
}
DrawScope::~DrawScope() { scope_on_thread = outer_; }

std::optional<DrawScope::Place> DrawScope::current() {
  if (!scope_on_thread) return std::nullopt;
  return Place{scope_on_thread->draw_, scope_on_thread->first_};
}

// ---- Snapshot and replay --------------------------------------------------------------------------------------------

RandomSnapshot::RandomSnapshot() {
  const Generator& generator = current_generator();
  {
    const std::lock_guard lock(generator.mutex_);
    seed_ = generator.seed_;
    counts_ = generator.counts_;
    injected_ = generator.injected_;
  }
  if (const DrawScope* scope = scope_on_thread) scope_ = ScopeState{scope->draw_, scope->first_, scope->counts_};
}

ReplayScope::ReplayScope(const RandomSnapshot& snapshot)
    : generator_(snapshot.seed_), outer_(current_on_thread), outer_scope_(scope_on_thread) {
  generator_.counts_ = snapshot.counts_;
  generator_.injected_ = snapshot.injected_;
  if (snapshot.scope_) {
    scope_.emplace(snapshot.scope_->draw, snapshot.scope_->first);
    scope_->counts_ = snapshot.scope_->counts;
  } else {
    scope_on_thread = nullptr;
  }
  current_on_thread = &generator_;
}

ReplayScope::~ReplayScope() {
  scope_.reset();
  current_on_thread = outer_;
  scope_on_thread = outer_scope_;
}

}  // namespace waymark
