#include "core/ops/registry.h"

// One line per op, by family. A new op stands in its family's file and here.
#define WAYMARK_OPS(X)   \
  /* create */           \
  X(kEmpty)              \
  X(kZeros)              \
  X(kOnes)               \
  X(kFull)               \
  X(kEye)                \
  X(kArange)             \
  X(kLinspace)           \
  X(kLogspace)           \
  X(kTrilIndices)        \
  X(kTriuIndices)        \
  X(kScalarTensor)       \
  /* random */           \
  X(kRand)               \
  X(kRandn)              \
  X(kGumbel)             \
  X(kNormal)             \
  X(kRandint)            \
  X(kRandperm)           \
  X(kBernoulli)          \
  X(kMultinomial)        \
  X(kUniformInplace)     \
  X(kNormalInplace)      \
  X(kBernoulliInplace)   \
  X(kExponentialInplace) \
  X(kTruncNormalInplace) \
  /* arithmetic */       \
  X(kAdd)                \
  X(kSub)                \
  X(kRsub)               \
  X(kMul)                \
  X(kDiv)                \
  X(kNeg)                \
  X(kPow)                \
  X(kMaximum)            \
  X(kMinimum)            \
  /* comparison */       \
  X(kEq)                 \
  X(kNe)                 \
  X(kLt)                 \
  X(kLe)                 \
  X(kGt)                 \
  X(kGe)                 \
  X(kLogicalAnd)         \
  X(kLogicalOr)          \
  X(kLogicalXor)         \
  X(kLogicalNot)         \
  X(kIsnan)              \
  X(kIsfinite)           \
  /* convert */          \
  X(kTo)                 \
  X(kClone)              \
  X(kContiguous)         \
  X(kDetach)             \
  /* pointwise */        \
  X(kAbs)                \
  X(kSquare)             \
  X(kReciprocal)         \
  X(kSqrt)               \
  X(kRsqrt)              \
  X(kExp)                \
  X(kLog)                \
  X(kSin)                \
  X(kCos)                \
  X(kTanh)               \
  X(kSigmoid)            \
  X(kErf)                \
  X(kSign)               \
  X(kFloor)              \
  X(kCeil)               \
  X(kClamp)              \
  /* select */           \
  X(kWhere)              \
  X(kMaskedFill)         \
  /* relative */         \
  X(kPairGather)         \
  X(kPairScatter)        \
  X(kThreeWayProduct)    \
  X(kRotatePairs)        \
  /* reduce */           \
  X(kSum)                \
  X(kMean)               \
  X(kSumToSize)          \
  X(kExpandReduced)      \
  X(kNorm)               \
  /* shape */            \
  X(kView)               \
  X(kReshape)            \
  X(kPermute)            \
  X(kExpand)             \
  X(kSlice)              \
  X(kSelect)             \
  X(kEmbedWindow)        \
  /* matmul */           \
  X(kMatmul)             \
  X(kMm)                 \
  X(kBmm)                \
  X(kMv)                 \
  X(kDot)                \
  X(kOuter)              \
  X(kAddmm)              \
  X(kBaddbmm)            \
  X(kLinear)             \
  X(kLinearPacked)       \
  /* softmax */          \
  X(kSoftmax)            \
  X(kSoftmin)            \
  X(kLogSoftmax)         \
  X(kMaskedSoftmax)      \
  /* embedding */        \
  X(kEmbedding)          \
  X(kEmbeddingBackward)  \
  X(kOneHot)             \
  /* dropout */          \
  X(kDropout)            \
  /* normalisation */    \
  X(kLayerNorm)          \
  X(kRmsNorm)            \
  X(kGroupNorm)          \
  /* activation */       \
  X(kRelu)               \
  X(kGelu)               \
  X(kSilu)               \
  X(kHardtanh)           \
  X(kRelu6)              \
  X(kLeakyRelu)          \
  X(kPrelu)              \
  X(kElu)                \
  X(kCelu)               \
  X(kSelu)               \
  X(kMish)               \
  X(kSoftplus)           \
  X(kSoftsign)           \
  X(kTanhshrink)         \
  X(kThreshold)          \
  X(kHardsigmoid)        \
  X(kHardswish)          \
  X(kLogsigmoid)         \
  X(kGlu)                \
  /* loss */             \
  X(kCrossEntropy)       \
  X(kNllLoss)            \
  X(kMseLoss)            \
  X(kL1Loss)             \
  X(kSmoothL1Loss)       \
  X(kHuberLoss)          \
  X(kKlDiv)              \
  X(kBinaryCrossEntropy) \
  X(kBinaryCrossEntropyWithLogits)\
  /* attention */        \
  X(kScaledDotProductAttention) \
  /* similarity */       \
  X(kNormalize)          \
  X(kCosineSimilarity)   \
  X(kPairwiseDistance)   \
  X(kCdist)              \
  X(kCosineEmbeddingLoss)\
  /* fourier */          \
  X(kFft)                \
  X(kIfft)               \
  X(kRfft)               \
  X(kIrfft)              \
  /* convolution */      \
  X(kConv1d)             \
  X(kConvTranspose1d)    \
  X(kConv1dWeight)       \
  /* linalg */           \
  X(kLinalgSolve)        \
  X(kInv)                \
  X(kLinalgQr)           \
  X(kLinalgSvd)          \
  X(kLinalgEigh)         \
  /* inplace */          \
  X(kAddInplace)         \
  X(kSubInplace)         \
  X(kMulInplace)         \
  X(kDivInplace)         \
  X(kFillInplace)        \
  X(kCopyInplace)

namespace waymark {

#define WAYMARK_DECLARE(K) extern const OpInfo K;
WAYMARK_OPS(WAYMARK_DECLARE)

std::span<const OpInfo* const> all_ops() {
#define WAYMARK_ADDRESS(K) &K,
  static constexpr const OpInfo* list[] = {WAYMARK_OPS(WAYMARK_ADDRESS)};
  return list;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo* op : all_ops())
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace waymark
