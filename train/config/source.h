// Sources of a config: files, the command line, a program. A source holds raw values; resolve.h joins and checks them.
//
// Precedence: defaults < preset < files in the order given < command line. Tables merge key by key, arrays replace.
// A key given twice in one source is a problem. So is a value of the wrong type, out of range or of an unknown name,
// also where a later source replaces it: it is a mistake in that source, which would come up as soon as it counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/spec/spec.h"
#include "train/config/problem.h"

namespace waymark::train {

struct RawField;

// A value as it was written, before its key's type is known. TOML strings are SpecValue text, bare words are words.
struct RawValue {
  nn::SpecValue value = {};
  // A table or an array of tables (optim.groups): `value` is then meaningless.
  bool is_table = false, is_table_list = false;
  std::vector<std::vector<RawField>> tables = {};
  std::string unusable = {};  // a TOML type that no key has ("a date"), else empty
  std::string written = {};   // then: as it was written, for messages
};
struct RawField {
  std::string name = {};
  RawValue value = {};
};
struct RawEntry {
  std::string key = {};  // "model.embed_dim"
  RawValue value = {};
  std::string origin = {};  // "tiny.toml:12", "--set", "--position", "program"
};

// What [sweep] of a file says.
struct SweepSource {
  bool present = false;
  std::vector<RawEntry> settings = {};  // sweep.seeds, sweep.grid.<key>, sweep.zip.<key>
  std::vector<std::vector<RawEntry>> cases = {}, excludes = {};
};

struct Source {
  std::vector<RawEntry> entries = {};
  SweepSource sweep = {};
};

// Reads a TOML file. Everything that is wrong with it becomes a problem with origin "<path>:<line>".
WAYMARK_API Source read_toml_file(const std::string& path, Problems& problems);
WAYMARK_API Source read_toml_text(std::string_view text, const std::string& shown_path, Problems& problems);

// One option of the command line: --set model.embed_dim=64 is {"model.embed_dim", "64", "--set"}, --position rope is
// {"model.position", "rope", "--position"}.
struct Override {
  std::string key = {}, text = {}, origin = {};
  bool is_text = false;  // short options for texts (--data-dir 2024) take their value as it is
};
// "key=value" of --set; a problem if there is no '=' or no key.
WAYMARK_API bool split_setting(const std::string& setting, const std::string& origin, Override& out,
                               Problems& problems);
WAYMARK_API Source command_line_source(const std::vector<Override>& overrides, Problems& problems);
// A value in TOML syntax; what is no TOML value is a string.
WAYMARK_API RawValue parse_setting_value(const std::string& text);

// Parts of a list at top level: commas inside brackets and quotes do not separate.
// none,"[rope]*3, none",t5(buckets=32, max_distance=64) -> 3 parts
WAYMARK_API std::vector<std::string> split_top_level(std::string_view text);

}  // namespace waymark::train
