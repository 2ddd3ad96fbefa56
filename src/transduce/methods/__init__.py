"""METHODS, the methods by name: one published method (or twin pair) per file, one line each."""

from transduce.methods.alpha_tim import AlphaTIM
from transduce.methods.bd_cspn import BDCSPN
from transduce.methods.coop import CoOp
from transduce.methods.em_dirichlet import EMDirichlet, HardEMDirichlet
from transduce.methods.em_gaussian import EMGaussianDiagonal, EMGaussianIdentity
from transduce.methods.k_means import HardKMeans, SoftKMeans
from transduce.methods.kl_k_means import KLKMeans
from transduce.methods.laplacian_shot import LaplacianShot
from transduce.methods.linear_probe import LinearProbe
from transduce.methods.method import Method
from transduce.methods.paddle import Paddle
from transduce.methods.plugins import MethodCatalogue
from transduce.methods.tip_adapter import TipAdapter, TipAdapterF
from transduce.methods.zero_shot import ZeroShot

METHODS = MethodCatalogue(
    "method",
    {
        ZeroShot.name: ZeroShot,
        EMDirichlet.name: EMDirichlet,
        HardEMDirichlet.name: HardEMDirichlet,
        HardKMeans.name: HardKMeans,
        SoftKMeans.name: SoftKMeans,
        EMGaussianIdentity.name: EMGaussianIdentity,
        EMGaussianDiagonal.name: EMGaussianDiagonal,
        KLKMeans.name: KLKMeans,
        Paddle.name: Paddle,
        BDCSPN.name: BDCSPN,
        LaplacianShot.name: LaplacianShot,
        AlphaTIM.name: AlphaTIM,
        LinearProbe.name: LinearProbe,
        TipAdapter.name: TipAdapter,
        TipAdapterF.name: TipAdapterF,
        CoOp.name: CoOp,
    },
)

__all__ = ["METHODS", "Method"]
