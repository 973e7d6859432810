// The help page on case files, from the table of kinds.
#include <fmt/format.h>

#include "train/verify/drafts.h"

namespace waymark::train {

namespace {

// Writes a file that passes: torch.nn.MultiheadAttention with padding.
constexpr const char* kPyTorch = R"(import json, torch
from safetensors.torch import save_file

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
for p in layer.parameters():
    torch.nn.init.normal_(p, std=0.5)
x = torch.randn(2, 5, 8, requires_grad=True)
keep = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
rows = keep[..., None].double()              # rows of padded queries do not count
y, weights = layer(x, x, x, key_padding_mask=keep == 0, average_attn_weights=False)
g = torch.randn_like(y) * rows
y.backward(g)

tensors = {"input.x": x.detach(), "input.mask": keep, "output": y.detach() * rows,
           "weights": weights.detach() * rows[:, None], "grad_output": g, "grad_input.x": x.grad}
for part in ["weight", "bias"]:
    packed = getattr(layer, "in_proj_" + part)   # PyTorch keeps three projections in one
    for name, value, grad in zip("qkv", packed.detach().chunk(3), packed.grad.chunk(3)):
        tensors[f"param.{name}_proj.{part}"] = value
        tensors[f"grad_param.{name}_proj.{part}"] = grad
    own = getattr(layer.out_proj, part)
    tensors["param.out_proj." + part] = own.detach()
    tensors["grad_param.out_proj." + part] = own.grad
config = {"embed_dim": 8, "num_heads": 2, "position": "none", "attention": "dense"}
save_file({name: t.clone().contiguous() for name, t in tensors.items()}, "mha.safetensors",
          {"format": "waymark-case-1", "module": "attention", "config": json.dumps(config),
           "rtol": "1e-9", "atol": "1e-12", "source": "torch " + torch.__version__})
)";

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out.substr(0, out.size() - 2);
}

void add_entries(std::string& out, const char* title, const std::vector<CaseEntry>& entries) {
  out += fmt::format("  {}\n", title);
  for (const CaseEntry& e : entries) {
    std::string facts = e.type;
    if (e.required) facts += facts.empty() ? "needed" : ", needed";
    if (!facts.empty()) facts = " (" + facts + ")";
    out += fmt::format("    {}{}{}{}\n", e.name, facts, *e.doc ? ": " : "", e.doc);
  }
}

}  // namespace

std::string case_help() {
  std::string out =
      "case-files: what another framework computed, in a safetensors file; waymark verify FILE compares\n\n"
      "Metadata, all texts: format = waymark-case-1, module = a kind below, config = a JSON object with its keys, rtol "
      "and\n"
      "atol (a tensor passes where |ours - theirs| <= atol + rtol |theirs|), source, and if there is something to say, "
      "note.\n"
      "Floats of f64 files are computed in f64, those of f32 files in f32. Masks are i64 or u8, 1 = keep; ids are "
      "i64.\n"
      "Evaluation mode. grad_* is what the backward pass of sum(output * grad_output) must give.\n\n"
      "Kinds\n";
  for (const CaseKind& kind : kinds()) {
    out += fmt::format("\n{}: {}\n", kind.name, kind.doc);
    add_entries(out, "keys", kind.keys);
    add_entries(out, "tensors", kind.tensors);
  }
  out += "\nFrom PyTorch\n\n" + indented(kPyTorch);
  out += "\nFrom here: waymark verify --write DIR SPEC..., a SPEC being\n\n";
  for (const DraftKind& kind : draft_kinds()) out += fmt::format("  {}\n", kind.table.signature());
  out +=
      "  optimizer(optimizer=adamw(lr=0.1), shape=[3,4], steps=4)\n"
      "  op(op=gather, input=[3,4], dim=1, index=int(shape=[3,2], high=4))\n"
      "      a tensor is its shape, or float(shape=, low=, high=, grad=), int(shape=, low=, high=), bool(shape=),\n"
      "      or its values: values(of=[[1,2],[3,4]]); indices are ints, none, \"...\", slice(start=, stop=, step=), tensors\n"
      "  or, short for one of these: an encoding, an attention, an optimizer, or an op with its arguments.\n";
  return out;
}

}  // namespace waymark::train
