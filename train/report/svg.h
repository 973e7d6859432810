// SvgWriter: deterministic SVG 1.1 text. No script, no style sheet, no font or image from elsewhere, no ids (so many
// drawings can stand in one page). Numbers have at most two decimals, attributes are in alphabetical order, text is
// escaped: the same drawing is the same bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

// Seven colours that stay apart with any common colour blindness (Okabe and Ito), to be used in this order. Line
// styles and markers change with the colour, so lines can also be told apart without colour.
WAYMARK_API std::string_view palette_color(i64 index);
// "stroke-dasharray", empty for a whole line; four of them.
WAYMARK_API std::string_view dash_pattern(i64 index);

// "12", "0.5", "-3.14": two decimals at most, no trailing zeros, no "-0". Error if the value is not finite.
WAYMARK_API std::string svg_number(double value);

class WAYMARK_API SvgWriter {
 public:
  // An attribute; numbers are written by svg_number.
  struct Attribute {
    std::string_view name;
    std::string value;
    Attribute(std::string_view n, std::string_view v) : name(n), value(v) {}
    Attribute(std::string_view n, double v) : name(n), value(svg_number(v)) {}
  };
  using Attributes = std::vector<Attribute>;

  // The <svg> element with <title> and <desc>, which screen readers speak, and a white ground.
  SvgWriter(double width, double height, std::string_view title, std::string_view description);

  void open(std::string_view element, Attributes attributes = {});
  void close();
  // An element without content.
  void leaf(std::string_view element, Attributes attributes);
  // An element that holds text.
  void text_element(std::string_view element, Attributes attributes, std::string_view text);

  void line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1,
            std::string_view dashes = {});
  // anchor: "start", "middle" or "end".
  void label(double x, double y, std::string_view text, std::string_view anchor = "start", double size = 12,
             Attributes more = {});
  // Text turned by -90 degrees about (x, y).
  void vertical_label(double x, double y, std::string_view text, double size = 12);
  // A marker about (x, y); seven shapes.
  void marker(double x, double y, i64 shape, std::string_view color, double radius = 3);

  // Closes what is open and returns the file.
  std::string finish();

 private:
  void start(std::string_view element, Attributes& attributes);

  std::string out_;
  std::vector<std::string> open_;
};

// Rough width of a text in the fonts that browsers use for "sans-serif".
WAYMARK_API double text_width(std::string_view text, double size);

}  // namespace waymark::train
