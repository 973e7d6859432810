// Clean builds compile the .cpp files of a folder together, as one text. So what a file keeps to itself (anonymous
// namespaces, static functions, constants, macros) needs a name that no other file of the folder gives away.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tests/structure/tree.h"

using namespace waymark::test;

namespace {

// Identifiers, numbers, "::" and single characters; literals as `""`, without comments and preprocessor lines, of which
// the names of macros that live to the end of the file are kept.
struct Tokens {
  std::vector<std::string> list;
  std::set<std::string> macros;
};
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
std::string word_at(const std::string& text, size_t at) {
  size_t end = at;
  while (end < text.size() && in_word(text[end])) ++end;
  return text.substr(at, end - at);
}
// Behind the literal that begins with this quote.
size_t literal_end(const std::string& text, size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}
// Behind a preprocessor line.
size_t directive_end(const std::string& text, size_t at, Tokens& out) {
  const size_t begin = at;
  while (at < text.size() && (text[at] != '\n' || text[at - 1] == '\\')) ++at;
  const size_t kind = std::min(text.find_first_not_of(" \t", begin + 1), text.size());
  if (text.compare(kind, 7, "define ") == 0) out.macros.insert(word_at(text, kind + 7));
  if (text.compare(kind, 6, "undef ") == 0) out.macros.erase(word_at(text, kind + 6));
  return at;
}
Tokens tokens_of(const std::string& text) {
  Tokens out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '#') {
      at = directive_end(text, at, out);
    } else if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.compare(at, 2, "/*") == 0) {
      at = std::min(text.find("*/", at), text.size() - 2) + 2;
    } else if (text.compare(at, 2, "R\"") == 0) {
      const size_t open = text.find('(', at);
      const std::string close = ")" + text.substr(at + 2, open - at - 2) + "\"";
      at = std::min(text.find(close, open), text.size()) + close.size();
      out.list.emplace_back("\"\"");
    } else if (c == '"' || c == '\'') {
      at = literal_end(text, at);
      out.list.emplace_back("\"\"");
    } else if (in_word(c)) {
      std::string word = word_at(text, at);
      at += word.size();
      while (is_digit(c) && at < text.size() && text[at] == '\'')  // 1'000
        at += 1 + word_at(text, at + 1).size();
      out.list.push_back(std::move(word));
    } else {
      const size_t length = text.compare(at, 2, "::") == 0 ? 2 : 1;
      out.list.push_back(text.substr(at, length));
      at += length;
    }
  }
  return out;
}

// Reads the declarations of a file and collects the names that stay in it.
class Reader {
 public:
  explicit Reader(const std::string& text) : tokens_(tokens_of(text)) {
    for (const std::string& macro : tokens_.macros) names_[macro];
  }
  // And what they mean, for aliases outside of anonymous namespaces: two files may say the same.
  std::map<std::string, std::string> names() {
    scope(false);
    return names_;
  }

 private:
  const std::string& at(size_t i) const {
    static const std::string none;
    return i < tokens_.list.size() ? tokens_.list[i] : none;
  }
  bool more() const { return i_ < tokens_.list.size(); }
  bool identifier(size_t i) const { return !at(i).empty() && in_word(at(i)[0]) && !is_digit(at(i)[0]); }
  bool one_of(size_t i, std::string_view characters) const {
    return at(i).size() == 1 && characters.find(at(i)[0]) != std::string_view::npos;
  }
  // Behind the bracket that closes the one here.
  size_t behind(size_t i) const {
    const std::string open = at(i), close = open == "(" ? ")" : open == "[" ? "]" : open == "<" ? ">" : "}";
    int depth = 0;
    for (; i < tokens_.list.size(); ++i) {
      if (at(i) == open) ++depth;
      else if (at(i) == close && --depth == 0) return i + 1;
      else if (open == "<" && (at(i) == "(" || at(i) == "{")) i = behind(i) - 1;
    }
    return i;
  }

  // Declarations up to the brace that ends the scope.
  void scope(bool anonymous) {
    while (more() && at(i_) != "}") {
      if (at(i_) == "namespace" || (at(i_) == "inline" && at(i_ + 1) == "namespace")) {
        size_t open = i_;
        while (open < tokens_.list.size() && at(open) != "{" && at(open) != ";") ++open;
        const bool nameless = at(i_ + 1) == "{";
        i_ = open + 1;
        if (at(open) == "{") scope(anonymous || nameless);
      } else if (at(i_) == "extern" && at(i_ + 1) == "\"\"" && at(i_ + 2) == "{") {
        i_ += 3;
        scope(anonymous);
      } else {
        declaration(anonymous);
      }
    }
    ++i_;
  }

  void declaration(bool anonymous) {
    bool is_static = false, constant = false, shared = false;
    const size_t begin = i_;
    while (at(i_) == "template" || at(i_) == "[" || at(i_) == "alignas" || at(i_) == "static" || at(i_) == "inline" ||
           at(i_) == "constexpr" || at(i_) == "const" || at(i_) == "extern" || at(i_) == "thread_local") {
      is_static |= at(i_) == "static";
      constant |= at(i_) == "constexpr" || at(i_) == "const";
      shared |= at(i_) == "extern" || at(i_) == "inline";
      if (at(i_) == "template" && at(i_ + 1) != "<") return skip_function();  // an instantiation
      if (at(i_) == "template" || at(i_) == "alignas") i_ = behind(i_ + 1);
      else i_ = at(i_) == "[" ? behind(i_) : i_ + 1;
    }
    const bool own = anonymous || is_static;
    if (at(i_) == "using") {
      std::string* meaning = at(i_ + 2) == "=" ? &names_[at(i_ + 1)] : nullptr;
      for (; more() && at(i_) != ";"; ++i_)
        if (meaning && !own) *meaning += at(i_) + " ";
      ++i_;
      return;
    }
    if (at(i_) == "struct" || at(i_) == "class" || at(i_) == "union" || at(i_) == "enum") {
      size_t open = i_;
      bool plain = true;  // not a specialisation, not the type of another name
      std::string name;
      for (; open < tokens_.list.size() && !one_of(open, "{:;="); ++open) {
        plain = plain && at(open) != "<" && at(open) != "::" && at(open) != "(";
        if (identifier(open) && at(open) != "final") name = at(open);
      }
      if (plain && at(open) != "=") {
        if (own && name != "struct" && name != "class" && name != "union" && name != "enum") names_[name];
        while (more() && at(open) != "{" && at(open) != ";") ++open;
        if (at(open) == "{") open = behind(open);
        i_ = open;
      }
    }
    declarators(own, constant && !shared);
    if (i_ == begin) ++i_;
  }

  // What is declared: functions, variables, several of them behind one type.
  void declarators(bool own, bool constant) {
    size_t words = 0;  // before the name
    while (more() && at(i_) != ";" && at(i_) != "}") {
      if (at(i_) == "operator") return skip_function();
      const bool qualified = i_ > 1 && at(i_ - 1) == "::";
      const std::string& next = at(i_ + 1);
      if (identifier(i_) && next == "<") {
        i_ = behind(i_ + 1);
        if (at(i_) == "(") return skip_function();  // a specialisation
      } else if (identifier(i_) && next == "(" && (at(i_ + 2) == "*" || at(i_ + 2) == "&") && identifier(i_ + 3)) {
        if (own) names_[at(i_ + 3)];
        return skip_function();
      } else if (identifier(i_) && next == "(") {
        if (words == 0) return skip_macro();
        if (own && !qualified) names_[at(i_)];  // else a member
        return skip_function();
      } else if (identifier(i_) && one_of(i_ + 1, "={[;,")) {
        if ((own || constant) && !qualified) names_[at(i_)];
        i_ = next_declarator(i_ + 1);
      } else if (at(i_) == "{") {
        return skip_function();  // of a type's specialisation
      } else {
        ++i_;
      }
      ++words;
    }
    if (at(i_) == ";") ++i_;
  }
  // At the next name of `type a = 1, b = 2;`, or the end.
  size_t next_declarator(size_t i) const {
    for (; i < tokens_.list.size() && at(i) != ";"; ++i) {
      if (at(i) == "(" || at(i) == "{" || at(i) == "[") i = behind(i) - 1;
      size_t name = i + 1;
      while (at(name) == "*" || at(name) == "&") ++name;
      if (at(i) == "," && identifier(name) && one_of(name + 1, "={[;,")) return name;
    }
    return i;
  }
  // Behind MACRO(...), and the body or the semicolon if it has one.
  void skip_macro() {
    i_ = behind(i_ + 1);
    if (at(i_) == "{") i_ = behind(i_);
    else if (at(i_) == ";") ++i_;
  }
  // Behind the body or the semicolon.
  void skip_function() {
    while (more() && at(i_) != "{" && at(i_) != ";") {
      if (at(i_) == ":") {  // members of a constructor
        do {
          while (more() && at(i_) != "(" && at(i_) != "{") ++i_;
          i_ = behind(i_);
        } while (at(i_) == ",");
      } else {
        i_ = at(i_) == "(" || at(i_) == "[" ? behind(i_) : i_ + 1;
      }
    }
    i_ = at(i_) == "{" ? behind(i_) : i_ + 1;
  }

  Tokens tokens_;
  std::map<std::string, std::string> names_;
  size_t i_ = 0;
};

Complaints check_unique_names(const Files& files) {
  static const std::set<std::string> apart = {"tests/bench", "tests/fuzz", "tests/consumer", "tests/sanitizer"};
  Complaints complaints;
  struct Owner {
    std::string file, meaning;
  };
  std::map<std::pair<std::string, std::string>, Owner> owners;  // by folder and name
  for (const auto& [path, text] : files) {
    if (!path.ends_with(".cpp") || path == "train/cli/main.cpp") continue;
    const std::string folder = path.substr(0, path.rfind('/'));
    if (apart.contains(folder)) continue;
    for (const auto& [name, meaning] : Reader(text).names()) {
      const auto [owner, first] = owners.emplace(std::pair(folder, name), Owner{path, meaning});
      if (!first && (meaning.empty() || meaning != owner->second.meaning))
        complaints.push_back(fmt::format("{} and {} both have a `{}` of their own: the files of a folder are compiled "
                                         "together in clean builds, so rename one, or say it once in a header",
                                         owner->second.file, path, name));
    }
  }
  return complaints;
}

std::string names_in(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : Reader(text).names()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}
std::string own_names(const std::string& text) { return names_in("namespace { " + text + " }"); }

}  // namespace

TEST_CASE("names that the files of a folder keep to themselves are unique in it") {
  const Files files = read_sources(WAYMARK_SOURCE_DIR);
  REQUIRE(files.contains("core/ops/reduce.cpp"));
  CHECK(fmt::format("{}", fmt::join(check_unique_names(files), "\n")) == "");
  size_t all = 0;  // or the reader is blind
  for (const auto& [path, text] : files)
    if (path.ends_with(".cpp")) all += Reader(text).names().size();
  CHECK(all > 1500);
}

TEST_CASE("a name that two files have is found") {
  const std::string one = "namespace a {\nnamespace {\nint twice(int x) { return 2 * x; }\n}  // namespace\n}\n";
  const std::string other = "static double twice(double x, int n) { return n * x; }\n";  // an overload, elsewhere
  const Complaints found = check_unique_names({{"nn/a.cpp", one}, {"nn/b.cpp", other}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with("nn/a.cpp and nn/b.cpp both have a `twice` of their own: the files of a folder are"));
  CHECK(check_unique_names({{"nn/a.cpp", one}, {"nn/c/b.cpp", other}}).empty());
  CHECK(check_unique_names({{"nn/a.cpp", one}, {"nn/b.h", other}}).empty());
  CHECK(check_unique_names({{"tests/fuzz/a.cpp", one}, {"tests/fuzz/b.cpp", other}}).empty());
  CHECK(check_unique_names({{"nn/a.cpp", one}, {"nn/b.cpp", other}, {"nn/c.cpp", one}}).size() == 2);
  const std::string alias = "namespace a { using T = std::vector<int>; }", same = "using T = std::vector<int>;";
  CHECK(check_unique_names({{"nn/a.cpp", alias}, {"nn/b.cpp", same}}).empty());
  CHECK(check_unique_names({{"nn/a.cpp", alias}, {"nn/b.cpp", "using T = std::vector<long>;"}}).size() == 1);
  CHECK(check_unique_names({{"nn/a.cpp", alias}, {"nn/b.cpp", "namespace { " + same + " }"}}).size() == 1);
}

TEST_CASE("which names stay in a file") {
  CHECK(names_in("int a; int f() { return 1; } struct S { int m; }; namespace n { void g(); }") == "");
  CHECK(own_names("int a; int f() { int b = 1; return b; } struct S : R { int m; }; using T = int;") == "S T a f");
  CHECK(names_in("namespace x::y { namespace { enum class E : u8 { a, b }; class C final {}; struct D; } int g() {} }") ==
        "C D E");
  CHECK(own_names("const auto f = [](int x) { return x; }; const M<int, N<2>> m = {{1, 2}}, *p = q, r[] = {1};") ==
        "f m p r");
  CHECK(own_names("template <class T, int n = (3)> std::vector<T> g(T t) requires X { } [[nodiscard]] int h();") ==
        "g h");
  CHECK(own_names("const std::regex r(\"a\"); std::map<int, int> t = std::map<int, int>{}; int (*p)(int);") == "p r t");
  CHECK(own_names("struct { int a; } list[] = {{1}}; struct P { int a; } const q{1}; alignas(64) int w[4];") ==
        "P list q w");
  CHECK(own_names("C::C(int a) : a_(a), b_{a} { } int C::size() const { } template <> int f<int>() {} int z;") == "z");
  CHECK(own_names("using std::move; using namespace std; bool operator==(A, B) { return 1; } TEST(\"a\") { } M(1) int z;") ==
        "z");
  CHECK(names_in("template int A::b<int>(int) const; template class C<int>; namespace { int z; }") == "z");
  CHECK(names_in("namespace { int n = 1'000; char c = '\"'; auto r = R\"x(int q; })\" int s;)x\"; } // int u;\n/* int v; */") ==
        "c n r");
  CHECK(names_in("constexpr int k = 1, l = 2; extern constexpr int m = 1; inline constexpr int n = 1; static int s() {}") ==
        "k l s");
  CHECK(names_in("#define A(x) \\\n  x\n#define B\n#undef B\n#include \"define c\"\n") == "A");
  CHECK(names_in("template <> struct fmt::formatter<int> { }; namespace { extern \"C\" { int c() {} } int d; }") ==
        "c d");
}
