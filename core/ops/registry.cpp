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
  /* functions */        \
  X(kExp2)               \
  X(kExpm1)              \
  X(kLog2)               \
  X(kLog10)              \
  X(kLog1p)              \
  X(kTan)                \
  X(kAsin)               \
  X(kAcos)               \
  X(kAtan)               \
  X(kSinh)               \
  X(kCosh)               \
  X(kAsinh)              \
  X(kAcosh)              \
  X(kAtanh)              \
  X(kErfc)               \
  X(kErfinv)             \
  X(kLogit)              \
  X(kNanToNum)           \
  X(kPositive)           \
  X(kTrunc)              \
  X(kFrac)               \
  X(kRound)              \
  X(kIsinf)              \
  X(kIsposinf)           \
  X(kIsneginf)           \
  X(kSignbit)            \
  X(kAtan2)              \
  X(kHypot)              \
  X(kLogaddexp)          \
  X(kXlogy)              \
  X(kXlog1py)            \
  X(kCopysign)           \
  X(kFmax)               \
  X(kFmin)               \
  X(kRemainder)          \
  X(kFmod)               \
  X(kFloorDivide)        \
  X(kDivRounded)         \
  X(kHeaviside)          \
  X(kBitwiseAnd)         \
  X(kBitwiseOr)          \
  X(kBitwiseXor)         \
  X(kBitwiseNot)         \
  X(kLeftShift)          \
  X(kRightShift)         \
  X(kLerp)               \
  X(kAddcmul)            \
  X(kAddcdiv)            \
  X(kClampTensor)        \
  X(kMaskedFillTensor)   \
  X(kIsclose)            \
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
  X(kNansum)             \
  X(kNanmean)            \
  X(kProd)               \
  X(kLogsumexp)          \
  X(kExpandReduced)      \
  X(kNorm)               \
  /* shape */            \
  X(kView)               \
  X(kReshape)            \
  X(kPermute)            \
  X(kExpand)             \
  X(kSlice)              \
  X(kSelect)             \
  X(kDiagonal)           \
  X(kUnfold)             \
  X(kAsStrided)          \
  X(kFlatten)            \
  X(kTranspose)          \
  X(kMT)                 \
  X(kT)                  \
  X(kSqueeze)            \
  X(kUnsqueeze)          \
  X(kNarrow)             \
  X(kSwapaxes)           \
  X(kMovedim)            \
  X(kUnflatten)          \
  X(kRavel)              \
  X(kBroadcastTo)        \
  X(kExpandAs)           \
  X(kEmbedWindow)        \
  X(kReadWindow)         \
  X(kWriteWindow)        \
  /* join */             \
  X(kCat)                \
  X(kStack)              \
  X(kHstack)             \
  X(kVstack)             \
  X(kSplit)              \
  X(kChunk)              \
  X(kTensorSplit)        \
  X(kUnbind)             \
  X(kMeshgrid)           \
  /* rearrange */        \
  X(kRepeat)             \
  X(kTile)               \
  X(kRepeatInterleave)   \
  X(kRoll)               \
  X(kFlip)               \
  X(kRot90)              \
  X(kPad)                \
  X(kTril)               \
  X(kTriu)               \
  X(kDiag)               \
  X(kDiagEmbed)          \
  X(kTrace)              \
  /* index */            \
  X(kIndex)              \
  X(kIndexPut)           \
  X(kIndexPutInplace)    \
  X(kIndexSelect)        \
  X(kIndexAdd)           \
  X(kIndexCopy)          \
  X(kIndexFill)          \
  X(kIndexAddInplace)    \
  X(kIndexCopyInplace)   \
  X(kIndexFillInplace)   \
  X(kGather)             \
  X(kTake)               \
  X(kTakeAlongDim)       \
  X(kScatter)            \
  X(kScatterAdd)         \
  X(kScatterInplace)     \
  X(kScatterAddInplace)  \
  X(kScatterReduce)      \
  X(kMaskedSelect)       \
  X(kMaskedScatter)      \
  X(kNonzero)            \
  X(kArgwhere)           \
  /* extremes */         \
  X(kAmax)               \
  X(kAmin)               \
  X(kMax)                \
  X(kMin)                \
  X(kAminmax)            \
  X(kArgmax)             \
  X(kArgmin)             \
  /* counts */           \
  X(kAll)                \
  X(kAny)                \
  X(kCountNonzero)       \
  X(kBincount)           \
  X(kHistc)              \
  /* moments */          \
  X(kVar)                \
  X(kStd)                \
  X(kVarMean)            \
  X(kStdMean)            \
  /* order */            \
  X(kSort)               \
  X(kArgsort)            \
  X(kTopk)               \
  X(kKthvalue)           \
  X(kMedian)             \
  X(kNanmedian)          \
  X(kQuantile)           \
  X(kUnique)             \
  X(kSearchsorted)       \
  X(kBucketize)          \
  /* scan */             \
  X(kLinearRecurrence)   \
  X(kCumsum)             \
  X(kCumprod)            \
  X(kLogcumsumexp)       \
  X(kCummax)             \
  X(kCummin)             \
  X(kDiff)               \
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
  X(kSoftmaxKl)          \
  X(kSymmetricKl)        \
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
  /* pooling */          \
  X(kAvgPool1d)          \
  X(kAdaptiveAvgPool1d)  \
  X(kInterpolate)        \
  X(kMaxPool1d)          \
  X(kWeightedWindows)    \
  /* einsum */           \
  X(kEinsum)             \
  X(kTensordot)          \
  X(kKron)               \
  /* inplace */          \
  X(kAddInplace)         \
  X(kSubInplace)         \
  X(kMulInplace)         \
  X(kDivInplace)         \
  X(kFillInplace)        \
  X(kNegInplace)         \
  X(kExpInplace)         \
  X(kSqrtInplace)        \
  X(kReluInplace)        \
  X(kTanhInplace)        \
  X(kSigmoidInplace)     \
  X(kPowInplace)         \
  X(kClampInplace)       \
  X(kMaskedFillInplace)  \
  X(kLerpInplace)        \
  X(kAddcmulInplace)     \
  X(kAddcdivInplace)     \
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
