#include "train/verify/verify.h"

#include <charconv>
#include <cmath>
#include <new>

#include "core/ops/convert.h"
#include "core/random/generator.h"
#include "nn/spec/suggest.h"
#include "train/verify/case_context.h"

namespace waymark::train {

bool is_tolerance(double v) { return v >= 0 && std::isfinite(v); }

bool CaseReport::pass() const {
  if (!usable() || checks.empty()) return false;
  for (const TensorCheck& c : checks)
    if (!c.pass) return false;
  return true;
}

// ---- one file -------------------------------------------------------------------------------------------------------

namespace {

std::optional<double> tolerance(const Metadata& meta, const std::string& key, CaseReport& report) {
  const auto it = meta.find(key);
  if (it == meta.end()) {
    report.problems.push_back(fmt::format("the metadata have no {}", key));
    return {};
  }
  double v = 0;
  const auto [end, error] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
  if (error != std::errc() || end != it->second.data() + it->second.size() || !is_tolerance(v)) {
    report.problems.push_back(fmt::format("{} = \"{}\" is no number that is finite and >= 0", key, it->second));
    return {};
  }
  return v;
}
// The one that the caller sets in place of the file's, or that.
std::optional<double> tolerance(const Metadata& meta, const std::string& key, const std::optional<double>& set, CaseReport& report) {
  if (!set) return tolerance(meta, key, report);
  if (!is_tolerance(*set)) report.problems.push_back(fmt::format("{} = {} is no number that is finite and >= 0", key, *set));
  return set;
}

// The file's draws, to be played in place of ours.
std::vector<NamedDraw> draws_of(CaseContext& c) {
  std::vector<NamedDraw> out;
  for (const std::string& name : c.with_prefix("rng.")) {
    const Tensor t = contiguous(c.get("rng." + name, true));
    NamedDraw draw{.name = "rng." + name, .buffer = {.dtype = t.dtype(), .shape = t.shape().vec(), .bytes = {}}};
    const auto* bytes = reinterpret_cast<const std::byte*>(t.raw());
    draw.buffer.bytes.assign(bytes, bytes + t.numel() * size_of(t.dtype()));
    out.push_back(std::move(draw));
  }
  return out;
}

// Collects what is wrong with the file as a whole before a kind works on it; what the kind then finds is added.
void run_file(const std::filesystem::path& path, const VerifyOptions& options, CaseReport& report) {
  const SafeTensors file = load_safetensors(path);
  const Metadata& meta = file.metadata();
  const auto text = [&](const char* key) {
    const auto it = meta.find(key);
    return it == meta.end() ? std::string() : it->second;
  };
  report.source = text("source");
  report.note = text("note");
  report.module = text("module");
  if (text("format") != "waymark-case-1")
    report.problems.push_back(fmt::format("format is \"{}\", not \"waymark-case-1\"", text("format")));
  const CaseKind* kind = find_kind(report.module);
  if (!kind) {
    const std::vector<std::string> names = case_kinds();
    report.problems.push_back(fmt::format("module \"{}\" is unknown; kinds are {}.{}", report.module,
                                          fmt::join(names, ", "), nn::did_you_mean(report.module, names)));
  }
  const auto rtol = tolerance(meta, "rtol", options.rtol, report), atol = tolerance(meta, "atol", options.atol, report);
  Json config;
  try {
    config = parse_json(meta.contains("config") ? meta.at("config") : "", "config");
    if (!config.is_object()) report.problems.push_back("config is no JSON object");
  } catch (const Error& e) { report.problems.push_back(e.what()); }
  if (!kind || !config.is_object()) return;
  CaseContext context(file, config, rtol.value_or(0), atol.value_or(0), options, report);
  const std::vector<std::string> of_config = check_config(*kind, config);
  for (const auto& list : {of_config, check_tensors(*kind, file.names())})
    for (const std::string& problem : list) context.problem(problem);
  if (!of_config.empty()) return;  // nothing can be built from it
  try {
    Generator generator;
    const RandomScope scope(generator);
    generator.inject(draws_of(context));
    const size_t before = report.problems.size();
    kind->run(context);
    if (report.problems.size() > before) return;  // it ended early: what it did not ask for says nothing
    generator.finish_injection();
    for (const std::string& name : context.unused()) context.problem(no_meaning(name, report.module));
  } catch (const std::bad_alloc&) {
    context.problem("there is not enough memory for what the file asks for");
  } catch (const std::exception& e) {
    const std::string_view what = e.what(), own = "verify: ";
    context.problem(std::string(what.starts_with(own) ? what.substr(own.size()) : what));
  }
}

}  // namespace

CaseReport verify_file(const std::filesystem::path& file, const VerifyOptions& options) {
  CaseReport report;
  report.file = file.string();
  try {
    run_file(file, options, report);
  } catch (const std::bad_alloc&) {
    report.problems.emplace_back("there is not enough memory to read the file");
  } catch (const std::exception& e) {
    report.problems.emplace_back(e.what());
  }
  if (!report.usable()) report.checks.clear();
  return report;
}

}  // namespace waymark::train
