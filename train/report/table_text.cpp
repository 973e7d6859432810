// Tables as Markdown and LaTeX.
#include <algorithm>

#include "core/tensor/error.h"
#include "train/report/escape.h"
#include "train/report/table_parts.h"

namespace waymark::train::table {

namespace {

constexpr i64 kLongestLabel = 80;

// The marks of a cell in one of the two languages.
struct Marks {
  std::string (*escape)(std::string_view);
  std::string plus_minus, dagger, bold_begin, bold_end, about;
};
const Marks kMarkdown{escape_markdown, " ± ", " †", "**", "**", "~"};
const Marks kLatex{escape_latex, " $\\pm$ ", " $^{\\dagger}$", "\\textbf{", "}", "$\\sim$"};

std::string cell_text(const TableRow& row, std::size_t c, const TableColumn& column, const Marks& marks) {
  const TableCell& cell = row.cells[c];
  if (row.baseline) return cell.summary.n > 0 ? shown_value(column, cell.summary.mean) : "";
  if (cell.summary.n == 0) return marks.escape(shorten(cell.states(), kLongestLabel));
  const Summary& s = cell.summary;
  std::string text = (cell.approximate ? marks.about : "") + shown_value(column, s.mean);
  if (cell.best) text = marks.bold_begin + text + marks.bold_end;
  if (s.sd) text += marks.plus_minus + shown_sd(column, *s.sd);
  if (cell.interval)
    text += marks.escape(fmt::format(" [{}, {}]", shown_value(column, cell.interval->low),
                                     shown_value(column, cell.interval->high)));
  const i64 planned = static_cast<i64>(cell.runs.size());
  std::string note = planned == s.n ? fmt::format("{}", s.n) : fmt::format("{} of {}", s.n, planned);
  if (planned != s.n) note += ", " + marks.escape(shorten(cell.states(), kLongestLabel));
  if (cell.untrained) note += ", untrained";
  text += " (" + note + ")";
  if (cell.indistinguishable) text += marks.dagger;
  return text;
}

// Title of a column: what does not go without saying.
std::string column_title(const TableGroup& group, std::size_t c) {
  const TableColumn& column = group.columns[c];
  const auto differs = [&](const std::string TableColumn::* part) {
    return std::any_of(group.columns.begin(), group.columns.end(),
                       [&](const TableColumn& other) { return other.*part != column.*part; });
  };
  const bool labels = differs(&TableColumn::label), metrics = differs(&TableColumn::metric);
  if (!labels) return metric_title(column);
  if (!metrics) return column.label + (column.share ? " %" : "");
  return column.label + " " + metric_title(column);
}

// The whole table as texts, header first.
std::vector<std::vector<std::string>> texts(const TableGroup& group, const TableOptions& options, const Marks& marks) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> header;
  for (const std::string& key : options.rows) header.push_back(marks.escape(shorten(key, kLongestLabel)));
  for (std::size_t c = 0; c < group.columns.size(); ++c)
    header.push_back(marks.escape(shorten(column_title(group, c), kLongestLabel)));
  for (const std::string& name : options.extra) header.push_back(marks.escape(extra_title(name)));
  lines.push_back(std::move(header));
  for (const TableRow& row : group.rows) {
    std::vector<std::string> line;
    for (const std::string& label : row.labels) line.push_back(marks.escape(shorten(label, kLongestLabel)));
    if (row.baseline) line[0] += " (baseline)";
    if (row.more_parameters)
      line.back() += marks.escape(fmt::format(" (+{:.0f} % parameters)", *row.more_parameters * 100));
    for (std::size_t c = 0; c < group.columns.size(); ++c) line.push_back(cell_text(row, c, group.columns[c], marks));
    for (std::size_t k = 0; k < options.extra.size(); ++k)
      line.push_back(row.baseline ? "" : shown_extra(options.extra[k], row.extra[k], row.extra_range[k]));
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::vector<std::string>> comparison_texts(const TableGroup& group, const Marks& marks) {
  std::vector<std::vector<std::string>> lines = {
      {"column", "metric", "mean difference", "95 % interval", "signs + - 0", "seeds"}};
  for (std::size_t c = 0; c < group.comparisons.size(); ++c) {
    const Comparison& comparison = group.comparisons[c];
    const TableColumn& column = group.columns[c];
    std::vector<std::string> line = {marks.escape(shorten(comparison.column, kLongestLabel)),
                                     marks.escape(shorten(metric_title(column), kLongestLabel))};
    if (!comparison.paired) {
      line.insert(line.end(), {"no common seed", "", "", ""});
    } else {
      const Paired& p = *comparison.paired;
      line.push_back(shown_value(column, p.difference.mean) +
                     (p.difference.sd ? marks.plus_minus + shown_sd(column, *p.difference.sd) : "") +
                     fmt::format(" ({})", p.difference.n));
      line.push_back(p.interval ? marks.escape(fmt::format("[{}, {}]", shown_value(column, p.interval->low),
                                                           shown_value(column, p.interval->high)))
                                : "needs two seeds");
      line.push_back(fmt::format("{} {} {}", p.positive, p.negative, p.zero));
      line.push_back(fmt::format("{}", fmt::join(comparison.seeds, ", ")));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string comparison_title(const TableOptions& options, const Marks& marks) {
  return marks.escape(shorten(options.compare->first, kLongestLabel)) + " minus " +
         marks.escape(shorten(options.compare->second, kLongestLabel));
}

// Columns padded to one width, so that the text can be read as it is. Labels to the left, numbers to the right.
std::string markdown_lines(const std::vector<std::vector<std::string>>& lines, std::size_t labels) {
  std::vector<i64> widths(lines[0].size(), 3);
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], display_width(line[c]));
  std::string out;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    out += '|';
    for (std::size_t c = 0; c < lines[r].size(); ++c) {
      const std::string pad(static_cast<std::size_t>(widths[c] - display_width(lines[r][c])), ' ');
      out += c < labels ? " " + lines[r][c] + pad + " |" : " " + pad + lines[r][c] + " |";
    }
    out += '\n';
    if (r > 0) continue;
    out += '|';
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string rule(static_cast<std::size_t>(widths[c]) + 1, '-');
      out += c < labels ? ":" + rule + "|" : rule + ":|";
    }
    out += '\n';
  }
  return out;
}

std::string latex_lines(const std::vector<std::vector<std::string>>& lines, std::size_t labels) {
  std::string out = "\\begin{tabular}{" + std::string(labels, 'l') + std::string(lines[0].size() - labels, 'r') +
                    "}\n\\toprule\n";
  for (std::size_t r = 0; r < lines.size(); ++r) {
    out += fmt::format("{} \\\\\n", fmt::join(lines[r], " & "));
    if (r == 0) out += "\\midrule\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string group_title(const TableGroup& group, const Marks& marks) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : group.keys)
    parts.push_back(marks.escape(shorten(key, kLongestLabel)) + " = " + marks.escape(shorten(value, kLongestLabel)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string write_markdown(const Table& table, const TableOptions& options) {
  std::string out;
  for (const TableGroup& group : table.groups) {
    if (!out.empty()) out += '\n';
    if (!group.keys.empty()) out += "### " + group_title(group, kMarkdown) + "\n\n";
    out += markdown_lines(texts(group, options, kMarkdown), options.rows.size());
    if (options.compare)
      out += "\n" + comparison_title(options, kMarkdown) + ", paired over common seeds:\n\n" +
             markdown_lines(comparison_texts(group, kMarkdown), 2);
    out += "\n" + escape_markdown(group.caption) + "\n";
    for (const std::string& warning : group.warnings) out += "\nWarning: " + escape_markdown(warning) + "\n";
  }
  return out;
}

std::string write_latex(const Table& table, const TableOptions& options) {
  std::string out = "% needs \\usepackage{booktabs} and UTF-8 input\n";
  for (const TableGroup& group : table.groups) {
    std::string caption = escape_latex(group.caption);
    if (!group.keys.empty()) caption = group_title(group, kLatex) + ". " + caption;
    for (const std::string& warning : group.warnings) caption += " Warning: " + escape_latex(warning);
    // The caption says † where the cells have the mathematical sign.
    for (std::size_t at; (at = caption.find("†")) != std::string::npos;)
      caption.replace(at, std::string("†").size(), "$^{\\dagger}$");
    for (std::size_t at; (at = caption.find("±")) != std::string::npos;)
      caption.replace(at, std::string("±").size(), "$\\pm$");
    out += "\\begin{table}\n\\centering\n\\caption{" + caption + "}\n" +
           latex_lines(texts(group, options, kLatex), options.rows.size());
    if (options.compare)
      out += "\n\\medskip\n" + comparison_title(options, kLatex) + ", paired over common seeds:\n\n" +
             latex_lines(comparison_texts(group, kLatex), 2);
    out += "\\end{table}\n";
  }
  return out;
}

}  // namespace waymark::train::table
