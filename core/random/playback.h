// Capture and injection of draws: what a model drew can be written into a case file, and another framework's draws can
// be played into ours. Draws appear here as plain buffers; core/ops turns tensors into them.
//
// The draws of a stream are named in the order in which they were first asked for: rng.<stream>, rng.<stream>.1,
// rng.<stream>.2, ... A draw that is asked for again (same draw number and first index: a second pass over frozen
// noise, a new DrawScope of the same step) is the same draw, and so has the same name and plays the same buffer.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random/draws.h"
#include "core/tensor/dtype.h"

namespace waymark {

// A dense row-major array. What is in it is the draw before any scaling: uniforms in [0, 1), standard normals,
// integers, 0/1 decisions (b8; for dropout 1 = keep).
struct DrawBuffer {
  DType dtype = kF32;
  std::vector<i64> shape;
  std::vector<std::byte> bytes;
};
struct NamedDraw {
  std::string name;  // "rng.<stream>" or "rng.<stream>.<n>"
  DrawBuffer buffer;
};

// once: each buffer is one draw, and the number of draws must be right. cycle: after the last buffer the first one
// plays again, and buffers may be left over ("replaces the draw until cleared").
enum class InjectMode : u8 { once, cycle };

// ---- For the ops that draw ------------------------------------------------------------------------------------------

// True and `out` filled if the draw is injected; then dtype and shape must be the buffer's (Error). False otherwise:
// the op computes the values.
WAYMARK_API bool play_draw(const Draw& draw, DType dtype, std::span<const i64> shape, void* out);
// The same check alone.
WAYMARK_API void check_injected(const Draw& draw, DType dtype, std::span<const i64> shape);
// The injected buffer itself, for ops that read a part of it; null if the draw is not injected.
WAYMARK_API const DrawBuffer* injected_buffer(const Draw& draw);
// Hands the values to the capture of the stream, if there is one. An op calls it once its draw is complete; a rule
// that draws again does not.
WAYMARK_API void capture_draw(const Draw& draw, DType dtype, std::span<const i64> shape, const void* data);
inline bool is_captured(const Draw& draw);

// ---- Behind Generator ---------------------------------------------------------------------------------------------

class CaptureLog {
 public:
  explicit CaptureLog(std::vector<std::string> streams) : streams_(std::move(streams)) {}  // none: all
  bool wants(std::string_view stream) const;
  // The index of the draw in its stream; reserves one if it is new.
  std::size_t ask(const std::string& stream, u32 number, u64 first);
  void record(const std::string& stream, std::size_t index, DrawBuffer buffer);
  // All draws by stream and index. Error if one was asked for and never recorded.
  std::vector<NamedDraw> draws() const;

 private:
  struct Entry {
    u32 number;
    u64 first;
    bool filled;
    DrawBuffer buffer;
  };
  std::vector<std::string> streams_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
};

// The injected draws of one stream. A value: a copy continues from the same place by itself.
class InjectedStream {
 public:
  InjectedStream(std::string stream, std::vector<DrawBuffer> draws, InjectMode mode);
  // The buffer of a draw and its index; Error if none is left.
  std::pair<std::shared_ptr<const DrawBuffer>, std::size_t> ask(u32 number, u64 first);
  std::size_t left_over() const;
  std::size_t size() const { return buffers_.size(); }

 private:
  std::string stream_;
  std::vector<std::shared_ptr<const DrawBuffer>> buffers_;
  InjectMode mode_;
  std::map<std::pair<u32, u64>, std::size_t> asked_;
  std::size_t next_ = 0;
};

// What a Draw carries if its stream is injected or captured.
struct DrawTap {
  std::string stream;
  std::shared_ptr<const DrawBuffer> injected;
  std::size_t injected_index = 0;
  std::shared_ptr<CaptureLog> log;
  std::size_t log_index = 0;
};

inline bool is_captured(const Draw& draw) { return draw.tap && draw.tap->log; }

// "rng.<stream>", from index 1 on with ".<index>".
WAYMARK_API std::string draw_name(std::string_view stream, std::size_t index);
// Sorts named draws by stream and index. Errors: names without "rng.", duplicates, a missing index.
WAYMARK_API std::map<std::string, std::vector<DrawBuffer>> draws_by_stream(std::vector<NamedDraw> draws);

}  // namespace waymark
