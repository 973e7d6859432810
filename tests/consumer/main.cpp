// A user's program: sees the installed headers and library, nothing of the tree.
#include <waymark.h>

int main() {
  try {
    waymark::fail("consumer", "{} is thrown", "this");
  } catch (const waymark::Error& e) {
    fmt::print("{}\n", e.what());
    return e.op() == "consumer" ? 0 : 1;
  }
}
