#include "core/tensor/error.h"

namespace waymark {

Error::Error(std::string op, const std::string& message, Loc loc)
    : std::runtime_error(op.empty() ? message : op + ": " + message),
      op_(std::move(op)),
      scope_(current_scope_path()),
      loc_(loc) {}

Error::Error(const Error& error, const std::string& added, std::string scope, Loc loc)
    : std::runtime_error(added.empty() ? error.what() : std::string(error.what()) + "\n  " + added),
      op_(error.op_),
      scope_(std::move(scope)),
      loc_(loc) {}

Error::~Error() = default;

void detail::throw_error(Loc loc, std::string_view op, fmt::string_view text, fmt::format_args args) {
  throw Error(std::string(op), fmt::vformat(text, args), loc);
}

std::string_view& current_scope_path() {
  thread_local std::string_view path;
  return path;
}

}  // namespace waymark
