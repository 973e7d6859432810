#include "train/verify/verify.h"

#include <charconv>
#include <cmath>

#include "core/ops/convert.h"
#include "nn/spec/glob.h"
#include "train/verify/case_context.h"

namespace waymark::train {

bool CaseReport::pass() const {
  if (!usable() || checks.empty()) return false;
  for (const TensorCheck& c : checks)
    if (!c.pass) return false;
  return true;
}

// ---- reading --------------------------------------------------------------------------------------------------------

Tensor CaseContext::get(const std::string& name, bool u8_is_bool) {
  used_.insert(name);
  const SafeTensors::Entry* e = file_.find(name);
  if (!e) fail("verify", "the file has no tensor {}", name);
  const Tensor t = file_.get(name);
  return u8_is_bool && e->dtype == FileDType::U8 ? to(t, kB8) : t;
}

std::vector<std::string> CaseContext::with_prefix(std::string_view prefix) const {
  std::vector<std::string> out;
  for (const SafeTensors::Entry& e : file_.entries())
    if (e.name.starts_with(prefix)) out.push_back(e.name.substr(prefix.size()));
  return out;
}

std::vector<std::string> CaseContext::unused() const {
  std::vector<std::string> out;
  for (const SafeTensors::Entry& e : file_.entries())
    if (!used_.contains(e.name)) out.push_back(e.name);
  return out;
}

DType CaseContext::dtype() const {
  for (const SafeTensors::Entry& e : file_.entries())
    if (e.dtype == FileDType::F64) return kF64;
  return kF32;
}

// ---- comparing ------------------------------------------------------------------------------------------------------

namespace {

std::string index_text(i64 flat, const Shape& shape) {
  std::vector<i64> index(static_cast<size_t>(shape.size()));
  for (int d = shape.size() - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = flat % shape[d];
    flat /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

void CaseContext::compare(const std::string& name, const Tensor& ours, bool u8_is_bool) {
  if (!options_.only.empty() && !nn::glob_match(options_.only, name)) {
    used_.insert(name);
    return;
  }
  compare_values(name, ours, get(name, u8_is_bool), nullptr);
}

void CaseContext::compare_rows(const std::string& name, const Tensor& ours, const Tensor& keep) {
  if (!options_.only.empty() && !nn::glob_match(options_.only, name)) {
    used_.insert(name);
    return;
  }
  const std::vector<bool> rows = to(keep, kB8).to_vector<bool>();
  compare_values(name, ours, get(name), &rows);
}

void CaseContext::compare_values(const std::string& name, const Tensor& ours, const Tensor& theirs,
                                 const std::vector<bool>* keep_rows) {
  TensorCheck check{.name = name, .shape = theirs.shape(), .where = {}};
  const auto refuse = [&](std::string why) {
    check.pass = false;
    check.where = std::move(why);
    report_.checks.push_back(check);
  };
  if (!ours.defined()) return refuse("not computed");
  if (ours.shape() != theirs.shape()) return refuse(fmt::format("ours has shape {}", ours.shape()));
  if (is_float(ours.dtype()) != is_float(theirs.dtype()) || (ours.dtype() == kB8) != (theirs.dtype() == kB8))
    return refuse(fmt::format("ours is {}, theirs {}", waymark::name_of(ours.dtype()), waymark::name_of(theirs.dtype())));
  const std::vector<double> a = ours.to_vector<double>(), b = theirs.to_vector<double>();
  // Elements of one row: everything but the leading axes that keep_rows counts.
  const size_t row = keep_rows && !keep_rows->empty() ? std::max<size_t>(1, a.size() / keep_rows->size()) : a.size();
  double worst = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (keep_rows && !(*keep_rows)[i / row]) continue;
    double excess;  // error over tolerance; > 1 fails
    if (std::isnan(b[i]) || std::isnan(a[i])) {
      excess = std::isnan(b[i]) && std::isnan(a[i]) ? 0 : INFINITY;
    } else if (std::isinf(b[i]) || std::isinf(a[i])) {
      excess = a[i] == b[i] ? 0 : INFINITY;
    } else {
      const double error = std::abs(a[i] - b[i]);
      check.max_abs = std::max(check.max_abs, error);
      if (b[i] != 0) check.max_rel = std::max(check.max_rel, error / std::abs(b[i]));
      const double tolerance = atol_ + rtol_ * std::abs(b[i]);
      excess = error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
    }
    if (excess > worst) {
      worst = excess;
      if (excess > 0) check.where = fmt::format("{} ours {} theirs {}", index_text(static_cast<i64>(i), theirs.shape()), a[i], b[i]);
    }
    check.pass &= excess <= 1;
  }
  report_.checks.push_back(std::move(check));
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
  if (error != std::errc() || end != it->second.data() + it->second.size() || !(v >= 0)) {
    report.problems.push_back(fmt::format("{} = \"{}\" is no number >= 0", key, it->second));
    return {};
  }
  return v;
}

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
  const CaseKind* kind = nullptr;
  for (const CaseKind& k : kinds())
    if (k.name == report.module) kind = &k;
  if (!kind) {
    const std::vector<std::string> names = case_kinds();
    report.problems.push_back(fmt::format("module \"{}\" is unknown; kinds are {}", report.module, fmt::join(names, ", ")));
  }
  const auto rtol = options.rtol ? options.rtol : tolerance(meta, "rtol", report);
  const auto atol = options.atol ? options.atol : tolerance(meta, "atol", report);
  Json config;
  try {
    config = parse_json(meta.contains("config") ? meta.at("config") : "", "config");
    if (!config.is_object()) report.problems.push_back("config is no JSON object");
  } catch (const Error& e) {
    report.problems.push_back(e.what());
  }
  if (!report.usable()) return;
  CaseContext context(file, std::move(config), *rtol, *atol, options, report);
  kind->run(context);
  if (!report.usable()) {
    report.checks.clear();
    return;
  }
  for (const std::string& name : context.unused())
    report.problems.push_back(fmt::format("the tensor {} has no meaning in a case of kind {}", name, report.module));
}

}  // namespace

CaseReport verify_file(const std::filesystem::path& file, const VerifyOptions& options) {
  CaseReport report;
  report.file = file.string();
  try {
    run_file(file, options, report);
  } catch (const std::exception& e) {
    report.problems.push_back(e.what());
  }
  if (!report.usable()) report.checks.clear();
  return report;
}

std::vector<std::string> case_kinds() {
  std::vector<std::string> out;
  for (const CaseKind& k : kinds()) out.emplace_back(k.name);
  return out;
}

}  // namespace waymark::train
