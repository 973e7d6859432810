#include "train/report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/tensor/error.h"
#include "train/report/escape.h"

namespace waymark::train {

std::string_view palette_color(i64 index) {
  constexpr std::array<std::string_view, 7> kColors = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                       "#E69F00", "#56B4E9", "#000000"};
  return kColors[static_cast<std::size_t>(index) % kColors.size()];
}

std::string_view dash_pattern(i64 index) {
  constexpr std::array<std::string_view, 4> kDashes = {"", "7 3", "2 3", "9 3 2 3"};
  return kDashes[static_cast<std::size_t>(index) % kDashes.size()];
}

std::string svg_number(double value) {
  if (!std::isfinite(value)) fail("svg", "a coordinate is {}", value);
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text, double size) { return 0.56 * size * static_cast<double>(display_width(text)); }

SvgWriter::SvgWriter(double width, double height, std::string_view title, std::string_view description) {
  out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
               {"version", "1.1"},
               {"role", "img"},
               {"width", width},
               {"height", height},
               {"viewBox", fmt::format("0 0 {} {}", svg_number(width), svg_number(height))},
               {"font-family", "sans-serif"}});
  text_element("title", {}, title);
  text_element("desc", {}, description);
  leaf("rect", {{"width", width}, {"height", height}, {"fill", "#ffffff"}});
}

void SvgWriter::start(std::string_view element, Attributes& attributes) {
  std::sort(attributes.begin(), attributes.end(),
            [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  out_.append(open_.size(), ' ');
  (out_ += '<') += element;
  for (const Attribute& attribute : attributes)
    ((((out_ += ' ') += attribute.name) += "=\"") += escape_xml(attribute.value)) += '"';
}

void SvgWriter::open(std::string_view element, Attributes attributes) {
  start(element, attributes);
  out_ += ">\n";
  open_.emplace_back(element);
}

void SvgWriter::close() {
  if (open_.empty()) fail("svg", "close() without an open element");
  const std::string element = std::move(open_.back());
  open_.pop_back();
  out_.append(open_.size(), ' ');
  ((out_ += "</") += element) += ">\n";
}

void SvgWriter::leaf(std::string_view element, Attributes attributes) {
  start(element, attributes);
  out_ += "/>\n";
}

void SvgWriter::text_element(std::string_view element, Attributes attributes, std::string_view text) {
  start(element, attributes);
  ((((out_ += '>') += escape_xml(clean_line(text))) += "</") += element) += ">\n";
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view color, double width,
                     std::string_view dashes) {
  Attributes attributes = {{"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}, {"stroke", color}, {"stroke-width", width}};
  if (!dashes.empty()) attributes.emplace_back("stroke-dasharray", dashes);
  leaf("line", std::move(attributes));
}

void SvgWriter::label(double x, double y, std::string_view text, std::string_view anchor, double size,
                      Attributes more) {
  more.insert(more.end(), {{"x", x}, {"y", y}, {"font-size", size}});
  if (anchor != "start") more.emplace_back("text-anchor", anchor);
  text_element("text", std::move(more), text);
}

void SvgWriter::vertical_label(double x, double y, std::string_view text, double size) {
  label(x, y, text, "middle", size,
        {{"transform", fmt::format("rotate(-90 {} {})", svg_number(x), svg_number(y))}});
}

void SvgWriter::marker(double x, double y, i64 shape, std::string_view color, double radius) {
  const double r = radius;
  const auto path = [&](std::initializer_list<std::pair<double, double>> points) {
    std::string text;
    for (const auto& [dx, dy] : points)
      text += fmt::format("{}{},{}", text.empty() ? "" : " ", svg_number(x + dx), svg_number(y + dy));
    leaf("polygon", {{"points", text}, {"fill", color}});
  };
  const auto cross = [&](double dx, double dy) {
    line(x - dx, y - dy, x + dx, y + dy, color, 1.5);
    line(x - dy, y + dx, x + dy, y - dx, color, 1.5);
  };
  switch (shape % 7) {
    case 0: leaf("circle", {{"cx", x}, {"cy", y}, {"r", r}, {"fill", color}}); break;
    case 1: path({{-r, -r}, {r, -r}, {r, r}, {-r, r}}); break;
    case 2: path({{0, -1.2 * r}, {1.2 * r, r}, {-1.2 * r, r}}); break;
    case 3: path({{0, -1.3 * r}, {1.3 * r, 0}, {0, 1.3 * r}, {-1.3 * r, 0}}); break;
    case 4: cross(r, r); break;
    case 5: path({{0, 1.2 * r}, {1.2 * r, -r}, {-1.2 * r, -r}}); break;
    default: cross(1.3 * r, 0); break;
  }
}

std::string SvgWriter::finish() {
  while (!open_.empty()) close();
  return std::move(out_);
}

}  // namespace waymark::train
