// Writing a case file of ours: a draft, the kind's own function for the results, and the check that it verifies.
#include <new>

#include "core/io/safetensors.h"
#include "core/ops/convert.h"
#include "core/random/generator.h"
#include "core/tensor/version.h"
#include "train/config/hash.h"
#include "train/verify/drafts.h"

namespace waymark::train {

namespace {

// A file name out of a spec: letters, digits, - . and _; a long one is cut, with a hash of the whole.
std::string file_stem(const std::string& kind, const std::string& spec) {
  std::string out = spec.starts_with(kind) ? "" : kind + "_";
  for (const char c : spec) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  if (out.size() > 100) out = out.substr(0, 90) + "_" + xxh128_hex(spec).substr(0, 8);
  while (out.ends_with('_')) out.pop_back();
  return out;
}

Tensor from_draw(const DrawBuffer& b) {
  const Tensor t = make_empty(Shape(b.shape), b.dtype);
  std::copy(b.bytes.begin(), b.bytes.end(), reinterpret_cast<std::byte*>(t.raw()));
  return t;
}

// The draft of a spec with all results.
CaseDraft computed(const std::string& spec) {
  CaseDraft draft = draft_of(spec);
  const VerifyOptions options;
  CaseReport running;
  Generator generator(draft.seed);
  const RandomScope scope(generator);
  generator.start_capture();
  CaseContext context(draft, options, running);
  find_kind(draft.kind)->run(context);
  for (const NamedDraw& draw : generator.take_captured())
    if (!draw.name.starts_with("rng.case.") && draw.name.find(".init") == std::string::npos)
      draft.tensors[draw.name] = from_draw(draw.buffer);
  if (!running.problems.empty()) fail("verify", "{}", fmt::join(running.problems, "; "));
  return draft;
}

std::string source_of(const std::string& spec) { return fmt::format("waymark {}, {}", version(), spec); }

// May a file of this spec be written here? Only over nothing, or over one of the same spec.
bool is_free(const std::filesystem::path& file, const std::string& spec) {
  if (!std::filesystem::exists(file)) return true;
  try {
    const Metadata meta = load_safetensors(file).metadata();
    const auto source = meta.find("source");
    return source != meta.end() && source->second.starts_with("waymark ") && source->second.ends_with(", " + spec);
  } catch (const Error&) { return false; }
}

std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& kind, const std::string& spec) {
  const std::string stem = file_stem(kind, spec);
  const std::filesystem::path file = folder / (stem + ".safetensors");
  return is_free(file, spec) ? file : folder / fmt::format("{}_{}.safetensors", stem, xxh128_hex(spec).substr(0, 8));
}

}  // namespace

std::string draft_problem(const std::string& spec) {
  try {
    computed(spec);
  } catch (const std::bad_alloc&) {
    return "there is not enough memory for it";
  } catch (const std::exception& e) {
    const std::string_view what = e.what(), own = "verify: ";
    return std::string(what.starts_with(own) ? what.substr(own.size()) : what);
  }
  return "";
}

WrittenCase write_case(const std::filesystem::path& folder, const std::string& spec) {
  const CaseDraft draft = computed(spec);
  const bool exact = draft.dtype == kF64;
  const Metadata metadata = {
      {"format", "waymark-case-1"},         {"module", draft.kind},
      {"config", write_json(draft.config)}, {"rtol", exact ? "1e-9" : "1e-5"},
      {"atol", exact ? "1e-12" : "1e-6"},   {"source", source_of(spec)}};
  NamedTensors tensors(draft.tensors.begin(), draft.tensors.end());
  std::filesystem::create_directories(folder);
  WrittenCase out{.file = file_of(folder, draft.kind, spec), .report = {}};
  save_safetensors(out.file, tensors, metadata);
  out.report = verify_file(out.file);
  return out;
}

}  // namespace waymark::train
