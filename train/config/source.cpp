// The only file that includes toml++.
#include "train/config/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

// toml++ 3.3 asserts what malformed text does not keep, and in release builds assumes it, which is undefined behaviour.
// Here its assertions throw, in every build; so it is compiled into this file instead of taken from its library.
namespace waymark::train {
namespace {
struct TomlAssertion : std::runtime_error {
  TomlAssertion() : std::runtime_error("malformed TOML") {}
};
void broken_toml_assertion() { throw TomlAssertion(); }
}  // namespace
}  // namespace waymark::train
#undef NDEBUG
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : waymark::train::broken_toml_assertion())
#include <toml++/toml.h>

#include "nn/spec/suggest.h"
#include "train/config/keys.h"

namespace waymark::train {

using nn::printable;
using nn::SpecValue;

namespace {

constexpr size_t kMaxFile = size_t{1} << 22;  // 4 MiB: no config is longer
constexpr int kMaxNesting = 64;

// toml++ bounds the nesting of values but not that of dotted keys, whose tables it frees recursively; so long runs of
// dots are found before it reads the text. Returns the line of the first one, or 0.
int line_of_deep_key(std::string_view text) {
  int line = 1, dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const bool multi = text.substr(i, 3) == std::string(3, c);
      const std::string end(multi ? 3 : 1, c);
      size_t k = i + end.size();
      while (k < text.size() && text.substr(k, end.size()) != end) {
        if (text[k] == '\n') {
          if (!multi) break;  // not closed: toml++ will say so
          ++line;
        }
        k += c == '"' && text[k] == '\\' ? 2 : 1;
      }
      i = std::min(text.size(), k + end.size()) - 1;
      if (!multi && i < text.size() && text[i] == '\n') --i;
    } else if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '.') {
      if (++dots > kMaxNesting) return line;
    } else if (c == '\n' || c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}') {
      dots = 0;
      line += c == '\n';
    }
  }
  return 0;
}

RawValue raw_value(const toml::node& node, int depth);

std::vector<RawField> raw_table(const toml::table& table, int depth) {
  std::vector<RawField> out;
  for (const auto& [key, node] : table) out.push_back({std::string(key.str()), raw_value(node, depth + 1)});
  return out;
}

RawValue unusable(std::string what, std::string written) {
  RawValue raw;
  raw.unusable = std::move(what);
  raw.written = std::move(written);
  return raw;
}

std::string written_date(const toml::node& node) {
  std::ostringstream text;
  if (const auto* date = node.as_date()) text << date->get();
  if (const auto* time = node.as_time()) text << time->get();
  if (const auto* both = node.as_date_time()) text << both->get();
  return text.str();
}

RawValue raw_array(const toml::array& array, int depth) {
  RawValue raw;
  size_t tables = 0;
  for (const toml::node& node : array) tables += node.is_table();
  if (tables > 0 && tables == array.size()) {
    raw.is_table_list = true;
    for (const toml::node& node : array) raw.tables.push_back(raw_table(*node.as_table(), depth));
    return raw;
  }
  std::vector<SpecValue> list;
  for (const toml::node& node : array) {
    RawValue item = raw_value(node, depth + 1);
    if (!item.unusable.empty() || item.is_table || item.is_table_list)
      return item.unusable.empty() ? unusable("a list of mixed values", "[...]")
                                   : unusable(item.unusable, fmt::format("[... {} ...]", item.written));
    list.push_back(std::move(item.value));
  }
  raw.value = SpecValue(std::move(list));
  return raw;
}

RawValue raw_value(const toml::node& node, int depth) {
  if (depth > kMaxNesting) return unusable("nested too deeply", "[...]");
  RawValue raw;
  switch (node.type()) {
    case toml::node_type::integer: raw.value = SpecValue(i64{**node.as_integer()}); return raw;
    case toml::node_type::floating_point: raw.value = SpecValue(double{**node.as_floating_point()}); return raw;
    case toml::node_type::boolean: raw.value = SpecValue(bool{**node.as_boolean()}); return raw;
    case toml::node_type::string: raw.value = SpecValue::quoted(**node.as_string()); return raw;
    case toml::node_type::array: return raw_array(*node.as_array(), depth);
    case toml::node_type::table:
      raw.is_table = true;
      raw.tables.push_back(raw_table(*node.as_table(), depth));
      return raw;
    default: return unusable("a date or a time", written_date(node));
  }
}

// "model", whose keys begin with "model."?
bool is_table_of_keys(const std::string& name) {
  for (const KeyInfo& key : config_keys())
    if (key.name.rfind(name + ".", 0) == 0) return true;
  return false;
}

struct Reader {
  const std::string& path;
  Source& source;
  Problems& problems;
  std::map<std::string, std::string> seen;  // key -> origin
  std::string prefix_of_list;               // keys of different list items are different

  std::string origin(const toml::node& node) const { return fmt::format("{}:{}", path, node.source().begin.line); }

  // toml++ sorts tables by name; the order of the file is that of rows in tables.
  static std::vector<std::pair<std::string, const toml::node*>> in_order(const toml::table& table) {
    std::vector<std::pair<std::string, const toml::node*>> items;
    for (const auto& [name, node] : table) items.emplace_back(name.str(), &node);
    std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
      const auto x = a.second->source().begin, y = b.second->source().begin;
      return x.line != y.line ? x.line < y.line : x.column < y.column;
    });
    return items;
  }

  // Every leaf becomes an entry, in the order of the file.
  void flatten(const toml::table& table, const std::string& prefix, int depth, std::vector<RawEntry>& out) {
    for (const auto& [written, pointer] : in_order(table)) {
      const toml::node& node = *pointer;
      const std::string name = written.empty() ? "\"\"" : written;
      if (depth == 0 && name == "sweep") continue;  // read_sweep
      const std::string key = prefix.empty() ? name : prefix + "." + name;
      const toml::table* inner = node.as_table();
      const bool of_keys = is_table_of_keys(key);
      // A header without keys says nothing.
      if (inner && inner->empty() && (of_keys || prefix.rfind("sweep", 0) == 0)) continue;
      if (inner && !inner->empty() && depth < kMaxNesting && !find_key(key)) {
        flatten(*inner, key, depth + 1, out);
        continue;
      }
      if (!inner && of_keys) {
        const toml::array* array = node.as_array();
        const bool tables = array && !array->empty() && (*array)[0].is_table();
        problems.push_back({origin(node), tables ? fmt::format("[[{0}]] is an array of tables, but {0} must be one table: [{0}]", key)
                                                 : fmt::format("{0} must be a table: [{0}]", key)});
        continue;
      }
      const auto [earlier, is_new] = seen.emplace(prefix_of_list + key, origin(node));
      if (!is_new)  // "model.seed" in quotes and [model] seed: two keys for TOML, one for us
        problems.push_back(
            {origin(node), fmt::format("{} is given twice, here and at {}", printable(key), earlier->second)});
      out.push_back({key, raw_value(node, depth), origin(node)});
    }
  }

  void read_sweep(const toml::node& node) {
    source.sweep.present = true;
    const toml::table* sweep = node.as_table();
    if (!sweep) {
      problems.push_back({origin(node), "sweep must be a table: [sweep]"});
      return;
    }
    for (const auto& [name, pointer] : in_order(*sweep)) {
      const toml::node& part = *pointer;
      const std::string key = "sweep." + name;
      if (name == "case")
        read_list(part, key, source.sweep.cases);
      else if (name == "exclude")
        read_list(part, key, source.sweep.excludes);
      else if (const toml::table* inner = part.as_table())
        flatten(*inner, key, 1, source.sweep.settings);
      else
        source.sweep.settings.push_back({key, raw_value(part, 1), origin(part)});
    }
  }

  void read_list(const toml::node& node, const std::string& name, std::vector<std::vector<RawEntry>>& out) {
    const toml::array* array = node.as_array();
    bool fits = array != nullptr;
    for (size_t i = 0; fits && i < array->size(); ++i) fits = (*array)[i].is_table();
    if (!fits) {
      problems.push_back({origin(node), fmt::format("{0} must be a list of tables: [[{0}]]", name)});
      return;
    }
    for (const toml::node& item : *array) {
      prefix_of_list = fmt::format("{}[{}].", name, out.size());
      flatten(*item.as_table(), "", 1, out.emplace_back());
    }
    prefix_of_list.clear();
  }
};

}  // namespace

Source read_toml_text(std::string_view text, const std::string& shown_path, Problems& problems) {
  Source source;
  if (text.size() > kMaxFile) {
    problems.push_back({shown_path, "longer than 4 MiB: this is no config"});
    return source;
  }
  if (const int line = line_of_deep_key(text)) {
    problems.push_back({fmt::format("{}:{}", shown_path, line), "a key of more than 64 parts"});
    return source;
  }
  try {
    const toml::table root = toml::parse(text, shown_path);
    Reader reader{shown_path, source, problems, {}, {}};
    if (const toml::node* sweep = root.get("sweep")) reader.read_sweep(*sweep);
    reader.flatten(root, "", 0, source.entries);
  } catch (const toml::parse_error& e) {
    const auto line = e.source().begin.line, column = e.source().begin.column;
    problems.push_back({fmt::format("{}:{}", shown_path, line),
                        fmt::format("{} (column {})", printable(e.description(), 200), column)});
  } catch (const TomlAssertion& e) { problems.push_back({shown_path, e.what()}); }
  return source;
}

Source read_toml_file(const std::string& path, Problems& problems) {
  const std::string shown = printable(path, 200);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  auto problem = [&](const char* text) {
    problems.push_back({shown, text});
    return Source{};
  };
  if (!std::filesystem::exists(status)) return problem("no such file");
  if (std::filesystem::is_directory(status)) return problem("is a folder, not a TOML file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return problem("cannot be opened");
  std::string text(kMaxFile + 1, '\0');  // bounded: the file may be endless
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return problem("cannot be read");
  text.resize(static_cast<size_t>(file.gcount()));
  return read_toml_text(text, shown, problems);
}

RawValue parse_setting_value(const std::string& text) {
  RawValue raw;
  raw.value = SpecValue::quoted(text);
  if (text.size() > kMaxFile || line_of_deep_key(text) != 0) return raw;
  try {
    const toml::table table = toml::parse("value = " + text);
    // A line break in the text could start another key: then it is no value.
    const toml::node* node = table.get("value");
    if (table.size() == 1 && node) return raw_value(*node, 0);
  } catch (const toml::parse_error&) {
    // What is no TOML is a string; an int that is too long would surprise as one.
    const size_t digits = text.find_first_of("+-") == 0 ? 1 : 0;
    if (text.size() > digits + 18 && text.find_first_not_of("0123456789", digits) == text.npos)
      return unusable("an int out of range (more than 63 bits)", text);
  } catch (const TomlAssertion&) {}
  return raw;
}

bool split_setting(const std::string& setting, const std::string& origin, Override& out, Problems& problems) {
  const size_t equals = setting.find('=');
  auto trimmed = [](std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return std::string(s);
  };
  if (equals == std::string::npos || trimmed(setting.substr(0, equals)).empty()) {
    problems.push_back({origin, fmt::format("{} is not KEY=VALUE", printable(setting))});
    return false;
  }
  out = {trimmed(setting.substr(0, equals)), trimmed(setting.substr(equals + 1)), origin, false};
  return true;
}

Source command_line_source(const std::vector<Override>& overrides, Problems& problems) {
  Source source;
  std::map<std::string, std::string> seen;  // key -> origin
  for (const Override& o : overrides) {
    RawValue value;
    if (o.is_text)
      value.value = SpecValue::quoted(o.text);
    else
      value = parse_setting_value(o.text);
    const auto [earlier, is_new] = seen.emplace(o.key, o.origin);
    if (!is_new)
      problems.push_back({o.origin, earlier->second == o.origin
                                        ? fmt::format("{} is given twice by {}", printable(o.key), o.origin)
                                        : fmt::format("{} is given twice, by {} and by {}", printable(o.key),
                                                      earlier->second, o.origin)});
    source.entries.push_back({o.key, std::move(value), o.origin});
  }
  return source;
}

std::vector<std::string> split_top_level(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const size_t start = i++;
      while (i < text.size() && text[i] != c) i += c == '"' && text[i] == '\\' ? 2 : 1;
      i = std::min(i, text.size() - 1);
      parts.back().append(text.substr(start, i - start + 1));
      continue;
    }
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (c == ',' && depth <= 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) {
    const size_t first = part.find_first_not_of(" \t"), last = part.find_last_not_of(" \t");
    part = first == std::string::npos ? "" : part.substr(first, last - first + 1);
  }
  return parts;
}

}  // namespace waymark::train
