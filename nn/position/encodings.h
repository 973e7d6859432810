// Internal: one function per encoding file; registry.cpp lists them.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

EncodingInfo none();
EncodingInfo sinusoid();
EncodingInfo learned();
EncodingInfo shaw();
EncodingInfo huang_m1();
EncodingInfo huang_m2();
EncodingInfo huang_m3();
EncodingInfo huang_m4();
EncodingInfo rope();

}  // namespace waymark::nn::encodings
