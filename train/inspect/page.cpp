#include "train/inspect/page.h"

#include <algorithm>

#include "train/report/escape.h"

namespace waymark::train {

namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fdfdfb; --line: #c9c9c2; --soft: #f1f1ec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e1; --paper: #17181a; --line: #45464a; --soft: #222428; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; font: 16px/1.5 sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
nav a { margin-right: 1rem; } a { color: inherit; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .7rem; }
figure { margin: 1.5rem 0; break-inside: avoid; } figcaption { max-width: 48rem; }
figure svg { max-width: 100%; height: auto; background: #ffffff; }
.note { border-left: 4px solid var(--line); padding-left: .8rem; }
)css";

std::string element(std::string_view name, std::string_view text) {
  return fmt::format("<{}>{}</{}>", name, escape_xml(text), name);
}

// A drawing without the declaration of an XML file.
std::string inline_svg(std::string_view svg) {
  const size_t start = svg.find("<svg");
  return std::string(start == std::string_view::npos ? svg : svg.substr(start));
}

std::vector<double> values_of(const NamedTensors& arrays, std::string_view name) {
  for (const auto& [key, t] : arrays)
    if (key == name) return t.to_vector<double>();
  return {};
}

// How far each head looks, in numbers.
std::string head_table(const LayerReport& layer) {
  const NamedTensors arrays = layer.statistics.arrays();
  const auto distance = values_of(arrays, "mean_distance"), entropy = values_of(arrays, "entropy"),
             within = values_of(arrays, "within"), uniform = values_of(arrays, "within_uniform"),
             reach = values_of(arrays, "within_distance"), entropy_uniform = values_of(arrays, "entropy_uniform");
  if (distance.empty()) return "";
  std::string out = "<table>\n<thead><tr><th scope=\"col\">head</th><th class=\"n\" scope=\"col\">mean distance (tokens)</th>"
                    "<th class=\"n\" scope=\"col\">entropy (nats)</th>";
  for (const double r : reach) out += fmt::format("<th class=\"n\" scope=\"col\">within {}</th>", static_cast<i64>(r));
  out += "</tr></thead>\n<tbody>\n";
  for (size_t h = 0; h < distance.size(); ++h) {
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{:.2f}</td><td class=\"n\">{:.2f}</td>", h, distance[h], entropy[h]);
    for (size_t k = 0; k < reach.size(); ++k) out += fmt::format("<td class=\"n\">{:.2f}</td>", within[h * reach.size() + k]);
    out += "</tr>\n";
  }
  out += fmt::format("<tr><td>uniform</td><td></td><td class=\"n\">{:.2f}</td>", entropy_uniform.empty() ? 0 : entropy_uniform[0]);
  for (const double u : uniform) out += fmt::format("<td class=\"n\">{:.2f}</td>", u);
  return out + "</tr>\n</tbody>\n</table>\n";
}

std::string figure_text(const Figure& f) {
  return fmt::format("<figure>\n{}<figcaption>{} {}</figcaption>\n</figure>\n", inline_svg(f.svg), element("strong", f.title + "."),
                     escape_xml(f.text));
}

}  // namespace

std::string inspection_page(const PageFacts& facts, const ModelReport& report, const std::vector<Figure>& figures) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                    "<meta content=\"width=device-width, initial-scale=1\" name=\"viewport\"/>\n";
  out += element("title", "Waymark: " + facts.title) + "\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n";
  out += element("h1", facts.title) + "\n<nav aria-label=\"layers\">";
  const bool input = std::any_of(figures.begin(), figures.end(), [](const Figure& f) { return f.layer < 0; });
  if (input) out += "<a href=\"#input\">input</a>";
  for (size_t l = 0; l < report.layers.size(); ++l) out += fmt::format("<a href=\"#layer-{}\">layer {}</a>", l, l);
  out += "</nav>\n<table>\n<tbody>\n";
  for (const auto& [name, value] : facts.summary)
    out += "<tr><th scope=\"row\">" + escape_xml(name) + "</th><td>" + escape_xml(value) + "</td></tr>\n";
  out += "</tbody>\n</table>\n";
  for (const std::string& text : facts.warnings) out += "<p class=\"note\">" + escape_xml(text) + "</p>\n";
  if (!facts.item.empty()) out += "<h2>The item</h2>\n" + element("pre", facts.item) + "\n";
  if (input) {
    out += "<h2 id=\"input\">Encodings at the input</h2>\n";
    for (const Figure& f : figures)
      if (f.layer < 0) out += figure_text(f);
  }
  for (size_t l = 0; l < report.layers.size(); ++l) {
    const LayerReport& layer = report.layers[l];
    out += fmt::format("<h2 id=\"layer-{}\">Layer {}: {} with {}</h2>\n", l, l, escape_xml(layer.attention), escape_xml(layer.position));
    for (const std::string& text : layer.notes) out += "<p class=\"note\">" + escape_xml(text) + "</p>\n";
    out += head_table(layer);
    for (const Figure& f : figures)
      if (f.layer == static_cast<i64>(l)) out += figure_text(f);
  }
  if (!facts.command.empty()) out += "<h2>To make this page again</h2>\n" + element("pre", facts.command) + "\n";
  return out + "</body>\n</html>\n";
}

}  // namespace waymark::train
