// waymark matrix: which position encoding goes with which attention; made from the judge alone.
#include <fmt/ranges.h>

#include <algorithm>

#include "nn/attention/judge.h"
#include "train/cli/command_list.h"
#include "train/cli/text_layout.h"
#include "train/report/escape.h"
#include "train/report/json.h"

namespace waymark::train::cli {

namespace {

using nn::JudgeMatrix;
using nn::Ruling;

constexpr const char* kLegend =
    "yes = goes together, w = runs, but a property is lost, - = refused; * = in a causal call only";

// What this version has: the judge has nothing to say about the rest, which stands below the table by name.
JudgeMatrix built_part(const JudgeMatrix& all) {
  JudgeMatrix m;
  const auto later = [](const std::vector<std::string>& planned, const std::string& name) {
    return std::find(planned.begin(), planned.end(), name) != planned.end();
  };
  for (const std::string& name : all.attentions)
    if (!later(nn::planned_attentions(), name)) m.attentions.push_back(name);
  for (size_t e = 0; e < all.encodings.size(); ++e) {
    if (later(nn::planned_encodings(), all.encodings[e])) continue;
    m.encodings.push_back(all.encodings[e]);
    auto& row = m.cells.emplace_back();
    for (size_t a = 0; a < all.attentions.size(); ++a)
      if (!later(nn::planned_attentions(), all.attentions[a])) row.push_back(all.cells[e][a]);
  }
  return m;
}

// "Not part of this version: the position encodings fourier, t5, ...; the attentions local, ..."; empty if nothing is.
std::string later_text() {
  std::string out;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    out += fmt::format("{} the {} {}", out.empty() ? "Not part of this version:" : ";", what, fmt::join(names, ", "));
  };
  add("position encodings", nn::planned_encodings());
  add("attentions", nn::planned_attentions());
  return out;
}

const char* word_of(Ruling ruling) {
  switch (ruling) {
    case Ruling::accept: return "yes";
    case Ruling::warn: return "warn";
    case Ruling::refuse: return "refused";
    default: return "not part of this version";
  }
}

// Marks with the number of their note, and the notes.
struct Cells {
  std::vector<std::string> head;               // "", attentions
  std::vector<std::vector<std::string>> rows;  // encoding, marks
  std::vector<std::string> notes;
};

Cells cells_of(const JudgeMatrix& m) {
  Cells cells;
  cells.head = {""};
  cells.head.insert(cells.head.end(), m.attentions.begin(), m.attentions.end());
  for (size_t e = 0; e < m.encodings.size(); ++e) {
    std::vector<std::string> row{m.encodings[e]};
    for (const JudgeMatrix::Cell& cell : m.cells[e]) {
      std::string mark = cell.mark();
      for (const std::string& note : cell.notes) {
        auto found = std::find(cells.notes.begin(), cells.notes.end(), note);
        if (found == cells.notes.end()) found = cells.notes.insert(found, note);
        mark += fmt::format(" {}", found - cells.notes.begin() + 1);
      }
      row.push_back(mark);
    }
    cells.rows.push_back(std::move(row));
  }
  return cells;
}

std::string notes_text(const Cells& cells) {
  std::string out;
  for (size_t i = 0; i < cells.notes.size(); ++i) out += fmt::format("{}. {}\n", i + 1, cells.notes[i]);
  return out;
}

std::string as_text(const Cells& cells) {
  std::vector<size_t> width;
  for (const std::string& name : cells.head) width.push_back(name.size());
  for (const auto& row : cells.rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string out;
  auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add(cells.head);
  for (const auto& row : cells.rows) add(row);
  out += fmt::format("\n{}\n", kLegend);
  if (!cells.notes.empty()) out += "\n" + notes_text(cells);
  if (const std::string later = later_text(); !later.empty()) out += "\n" + paragraph(later);
  return out;
}

std::string as_markdown(const Cells& cells) {
  std::string out = "|";
  for (const std::string& name : cells.head) out += " " + escape_markdown(name) + " |";
  out += "\n|";
  for (size_t i = 0; i < cells.head.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& row : cells.rows) {
    out += "|";
    for (const std::string& cell : row) out += " " + escape_markdown(cell) + " |";
    out += "\n";
  }
  out += fmt::format("\n{}\n", escape_markdown(kLegend));
  if (!cells.notes.empty()) out += "\n" + notes_text(cells);
  if (const std::string later = later_text(); !later.empty()) out += "\n" + escape_markdown(later) + "\n";
  return out;
}

std::string as_csv(const JudgeMatrix& m) {
  std::string out = "encoding,attention,bidirectional,causal,notes\r\n";
  for (size_t e = 0; e < m.encodings.size(); ++e)
    for (size_t a = 0; a < m.attentions.size(); ++a) {
      const JudgeMatrix::Cell& cell = m.cells[e][a];
      std::string notes;
      for (const std::string& note : cell.notes) notes += (notes.empty() ? "" : "; ") + note;
      out += fmt::format("{},{},{},{},{}\r\n", csv_field(m.encodings[e]), csv_field(m.attentions[a]),
                         word_of(cell.bidirectional), word_of(cell.causal), csv_field(notes));
    }
  return out;
}

std::string as_json(const JudgeMatrix& m) {
  Json::Array cells;
  for (size_t e = 0; e < m.encodings.size(); ++e)
    for (size_t a = 0; a < m.attentions.size(); ++a) {
      const JudgeMatrix::Cell& cell = m.cells[e][a];
      Json::Array notes;
      for (const std::string& note : cell.notes) notes.emplace_back(note);
      cells.push_back(Json::Object{{"encoding", m.encodings[e]},
                                   {"attention", m.attentions[a]},
                                   {"bidirectional", word_of(cell.bidirectional)},
                                   {"causal", word_of(cell.causal)},
                                   {"notes", std::move(notes)}});
    }
  const auto names = [](const std::vector<std::string>& list) {
    Json::Array out;
    for (const std::string& name : list) out.emplace_back(name);
    return out;
  };
  Json later = Json::Object{{"encodings", names(nn::planned_encodings())}, {"attentions", names(nn::planned_attentions())}};
  return write_json(Json::Object{{"format", "waymark-matrix-1"},
                                 {"cells", std::move(cells)},
                                 {"not_in_this_version", std::move(later)}},
                    1) +
         "\n";
}

std::string as_html(const Cells& cells) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>waymark matrix</title><style>"
      "body{font-family:sans-serif}table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2em .5em}"
      "</style></head><body>\n<table>\n<tr>";
  for (const std::string& name : cells.head) out += "<th>" + escape_xml(name) + "</th>";
  out += "</tr>\n";
  for (const auto& row : cells.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += i == 0 ? "<th>" + escape_xml(row[i]) + "</th>" : "<td>" + escape_xml(row[i]) + "</td>";
    out += "</tr>\n";
  }
  out += fmt::format("</table>\n<p>{}</p>\n", escape_xml(kLegend));
  if (!cells.notes.empty()) {
    out += "<ol>\n";
    for (const std::string& note : cells.notes) out += "<li>" + escape_xml(note) + "</li>\n";
    out += "</ol>\n";
  }
  if (const std::string later = later_text(); !later.empty()) out += fmt::format("<p>{}</p>\n", escape_xml(later));
  return out + "</body></html>\n";
}

int run_matrix(const Arguments& arguments) {
  const JudgeMatrix m = built_part(nn::judge_matrix(arguments.has("--cross")));
  const std::string format = arguments.text("--format");
  std::string text;
  if (format == "csv")
    text = as_csv(m);
  else if (format == "json")
    text = as_json(m);
  else if (format == "md")
    text = as_markdown(cells_of(m));
  else if (format == "html")
    text = as_html(cells_of(m));
  else
    text = as_text(cells_of(m));
  fmt::print("{}", text);
  return 0;
}

}  // namespace

Command matrix_command() {
  Command command;
  command.name = "matrix";
  command.summary = "which position encoding goes with which attention";
  command.options = {
      {"--format", "NAME", "of the text", "text", ArgumentType::text, {"text", "md", "csv", "json", "html"}},
      {"--cross", "", "for cross-attention", ""},
  };
  command.examples = {"waymark matrix", "waymark matrix --format md > matrix.md"};
  command.run = run_matrix;
  return command;
}

}  // namespace waymark::train::cli
