// All optimizers: the base (base.h) and one header each.
#pragma once

#include "train/optim/adafactor.h"
#include "train/optim/adam.h"
#include "train/optim/base.h"
#include "train/optim/lamb.h"
#include "train/optim/sgd.h"
