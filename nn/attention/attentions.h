// Internal: one function per attention file; registry.cpp lists them.
#pragma once

#include "nn/attention/attention.h"

namespace waymark::nn::attentions {

AttentionInfo dense();

}  // namespace waymark::nn::attentions
