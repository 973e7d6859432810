// Error: the one exception of Waymark. It is thrown before anything is changed, and its text says which op,
// which rule in words, what was received, and what would be right:
//   matmul: inner sizes differ: [8, 64] x [32, 8] (64 != 32)
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/tensor/loc.h"
#include "core/tensor/types.h"

namespace waymark {

class WAYMARK_API Error : public std::runtime_error {
 public:
  // what() is "<op>: <message>", or the message alone if `op` is empty.
  Error(std::string op, const std::string& message, Loc loc = {});
  // The same error with a line added to its text (if not empty), as seen from an op at `loc` in `scope` (errors in backward).
  Error(const Error& error, const std::string& added, std::string scope, Loc loc);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;

  const std::string& op() const { return op_; }
  // Module path ("encoder.layers.0.attention") that was active where the error was thrown; may be empty.
  const std::string& scope() const { return scope_; }
  // Source place of the op's caller, if the op knew it.
  Loc loc() const { return loc_; }

 private:
  std::string op_, scope_;
  Loc loc_;
};

// The module path that is active on this thread; kept by autograd's Scope guard.
WAYMARK_API std::string_view& current_scope_path();

// Throws Error(op, formatted message). Every check of the library ends here.
namespace detail {
[[noreturn]] WAYMARK_API void throw_error(Loc loc, std::string_view op, fmt::string_view text, fmt::format_args args);
}
template <class... Args>
[[noreturn]] void fail(std::string_view op, fmt::format_string<Args...> text, Args&&... args) {
  detail::throw_error({}, op, text, fmt::make_format_args(args...));
}
template <class... Args>
[[noreturn]] void fail_at(Loc loc, std::string_view op, fmt::format_string<Args...> text, Args&&... args) {
  detail::throw_error(loc, op, text, fmt::make_format_args(args...));
}

// Base of the fmt::formatter of a class that is shown as text, by "{}" only; format() stands in the class's .cpp.
// A formatter that derives from fmt's own would compile its machinery in every file that mentions the class.
struct PlainText {
  template <class Context> constexpr auto parse(Context& c) {
    if (c.begin() != c.end() && *c.begin() != '}') c.on_error("only {} can show this");
    return c.begin();
  }
};

}  // namespace waymark
