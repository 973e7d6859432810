#include "train/report/mask_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "train/report/svg.h"

namespace waymark::train {

namespace {

constexpr double kPanel = 256, kGap = 24, kTop = 48;

// A square of cells at x; color(a, b) is empty where nothing is drawn. Runs of one colour in a row are one rectangle.
void draw_panel(SvgWriter& svg, double x, i64 cells, const std::string& name, const std::function<std::string(i64, i64)>& color) {
  if (!name.empty()) svg.label(x, kTop - 6, name);
  const double size = cells ? kPanel / static_cast<double>(cells) : kPanel;
  for (i64 a = 0; a < cells; ++a)
    for (i64 b = 0; b < cells;) {
      const std::string fill = color(a, b);
      i64 end = b + 1;
      while (end < cells && color(a, end) == fill) ++end;
      if (!fill.empty())
        svg.leaf("rect", {{"fill", fill}, {"height", size}, {"width", size * static_cast<double>(end - b)},
                          {"x", x + size * static_cast<double>(b)}, {"y", kTop + size * static_cast<double>(a)}});
      b = end;
    }
  svg.leaf("rect", {{"fill", "none"}, {"height", kPanel}, {"stroke", "#888888"}, {"width", kPanel}, {"x", x}, {"y", kTop}});
}

std::string grey(double share) {
  if (share == 0) return "";
  const int level = 216 - static_cast<int>(std::lround(184 * share));
  return fmt::format("#{0:02x}{0:02x}{0:02x}", level);
}

}  // namespace

std::string mask_svg(const nn::MaskReport& r, const std::string& title) {
  const double panels = static_cast<double>(std::max<size_t>(1, r.heads.size()));
  SvgWriter svg(2 * kGap + panels * (kPanel + kGap) - kGap, kTop + kPanel + kGap, title,
                "which pairs of tokens attention may use: queries downwards, keys to the right, black = all");
  svg.label(kGap, 20, fmt::format("{}, {} tokens", title, r.length));
  for (size_t h = 0; h < r.heads.size(); ++h) {
    const nn::MaskPicture& p = r.heads[h].picture;
    draw_panel(svg, kGap + static_cast<double>(h) * (kPanel + kGap), p.cells, r.heads.size() == 1 ? "" : fmt::format("head {}", h),
               [&](i64 a, i64 b) { return grey(p.share[static_cast<size_t>(a * p.cells + b)]); });
  }
  return svg.finish();
}

std::string mask_svg(const nn::MaskDifference& d, const std::string& title) {
  SvgWriter svg(2 * kGap + kPanel, kTop + kPanel + 2 * kGap, title,
                "pairs of tokens that both masks allow, that are gone, and that are new: queries downwards, keys to the right");
  const std::string gone(palette_color(1)), added(palette_color(2));
  svg.label(kGap, 20, title);
  draw_panel(svg, kGap, d.cells, "", [&](i64 a, i64 b) {
    const size_t at = static_cast<size_t>(a * d.cells + b);
    return d.gone[at] > d.added[at] ? gone : d.added[at] > 0 ? added : grey(d.kept[at]);
  });
  const double y = kTop + kPanel + 18;
  svg.label(kGap, y, fmt::format("kept {}", d.kept_pairs), "start", 12, {{"fill", "#444444"}});
  svg.label(kGap + 90, y, fmt::format("gone {}", d.gone_pairs), "start", 12, {{"fill", gone}});
  svg.label(kGap + 180, y, fmt::format("new {}", d.added_pairs), "start", 12, {{"fill", added}});
  return svg.finish();
}

}  // namespace waymark::train
