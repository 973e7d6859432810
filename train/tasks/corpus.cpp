#include "train/tasks/corpus.h"

#include <algorithm>
#include <optional>

#include "core/io/files.h"
#include "train/data/sources.h"

namespace waymark::train {

std::vector<nn::OptionDef> Corpus::options() {
  return {{"source", nn::word_option("file", {"file", "kjv", "shakespeare", "licenses"}), "file: the text of `path`"},
          {"path", nn::text_option(""), "a UTF-8 text, for source=file"},
          {"level", nn::word_option("char", {"char", "byte"}), "symbols: code points, or bytes"},
          {"lower", nn::bool_option(false), "lower case"},
          {"collapse", nn::bool_option(false), "each run of white space becomes one space"},
          {"verse_labels", nn::bool_option(false), "keep Ge1:1 before each verse of kjv"}};
}

void Corpus::check_options(const nn::Options& spec, std::vector<std::string>& problems) {
  const bool file = spec.word("source") == "file";
  if (file && spec.word("path").empty()) problems.push_back("source=file needs path=\"FILE\"");
  if (!file && !spec.word("path").empty()) problems.push_back("path has no effect: source is " + spec.word("source"));
  if (spec.word("source") != "kjv" && spec.boolean("verse_labels"))
    problems.push_back("verse_labels has no effect: source is " + spec.word("source"));
  if (spec.word("level") == "byte")
    for (const char* option : {"lower", "collapse"})
      if (spec.boolean(option)) problems.push_back(std::string(option) + " needs level=char");
}

namespace {

// The text, and what is measured where that is a text of its own.
struct SourceText {
  std::string text, measured = {};
};

SourceText read_source(const TaskRequest& request, std::string& origin) {
  const nn::Options& spec = *request.spec;
  origin = spec.word("source");
  if (origin == "kjv") return {read_kjv(request.data_dir, spec.boolean("verse_labels"))};
  if (origin == "shakespeare") return {read_shakespeare(request.data_dir)};
  if (origin == "licenses") {
    LicenseTexts texts = read_licenses(request.data_dir);
    return {std::move(texts.training), std::move(texts.measured)};
  }
  const std::filesystem::path path = find_text_file(request.data_dir, spec.word("path"));
  origin = path.string();
  return {read_file(path)};
}

std::u32string symbols_of(const std::string& bytes, bool byte_level, const nn::Options& spec, const std::string& origin) {
  if (!byte_level) return prepare_text(decode_utf8(bytes, origin), {spec.boolean("lower"), spec.boolean("collapse")});
  std::u32string text;
  for (const char c : bytes) text.push_back(static_cast<unsigned char>(c));
  return text;
}

}  // namespace

Corpus::Corpus(const TaskRequest& request, i64 least) {
  const nn::Options& spec = *request.spec;
  std::optional<i64> border;  // where a measured text of its own begins
  try {
    const SourceText source = read_source(request, origin_);
    const bool byte_level = spec.word("level") == "byte";
    std::u32string text = symbols_of(source.text, byte_level, spec, origin_);
    if (!source.measured.empty()) {
      border = static_cast<i64>(text.size());
      text += symbols_of(source.measured, byte_level, spec, origin_);
    }
    vocabulary_ = byte_level ? Vocabulary::of_bytes() : Vocabulary::of_text(text);
    ids_ = vocabulary_.encode(text);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& e) {
    throw ConfigError(Problems{{"task", e.what()}});
  }
  const i64 n = static_cast<i64>(ids_.size());
  // Shares as integers, so that every machine cuts at the same symbol.
  const i64 end = border.value_or(n / 10 * 9 + n % 10 * 9 / 10);
  test_is_val = border || request.split == "nanogpt";
  train = {0, end};
  val = {end, test_is_val ? n : end + (n - end) / 2};
  test = test_is_val ? val : TextPart{val.end, n};
  const i64 shortest = std::min({train.size(), val.size(), test.size()});
  if (shortest < least)
    throw ConfigError(Problems{{"task", fmt::format("{} has {} symbols: its parts for training, validation and test have {}, {} "
                                            "and {}, but a window has {}",
                                            origin_, n, train.size(), val.size(), test.size(), least)}});
}

Windows::Windows(TextPart part_, i64 length_, i64 limit)
    : part(part_), length(length_), all(part_.size() / length_) {
  count = limit > 0 ? std::min(limit, all) : all;
}

}  // namespace waymark::train
