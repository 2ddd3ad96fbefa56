"""METHODS, the methods by name: one published method (or twin pair) per file, one line each."""

from transduce.methods.alpha_tim import AlphaTIM
from transduce.methods.anchored import Anchored
from transduce.methods.bd_cspn import BDCSPN
from transduce.methods.coop import CoOp
from transduce.methods.em_dirichlet import EMDirichlet, HardEMDirichlet
from transduce.methods.em_gaussian import EMGaussianDiagonal, EMGaussianIdentity
from transduce.methods.gda_clip import GDACLIP
from transduce.methods.k_means import HardKMeans, SoftKMeans
from transduce.methods.kl_k_means import KLKMeans
from transduce.methods.laplacian_shot import LaplacianShot
from transduce.methods.linear_probe import LinearProbe
from transduce.methods.method import Method
from transduce.methods.moon import Moon
from transduce.methods.paddle import Paddle
from transduce.methods.plugins import MethodCatalogue
from transduce.methods.prior_shift import PriorShift
from transduce.methods.stata import StatA
from transduce.methods.tip_adapter import TipAdapter, TipAdapterF
from transduce.methods.transclip import TransCLIP
from transduce.methods.zero_shot import ZeroShot
from transduce.methods.zlap import ZLaP

METHODS = MethodCatalogue(
    "method",
    {
        Anchored.name: Anchored,
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
        GDACLIP.name: GDACLIP,
        PriorShift.name: PriorShift,
        TransCLIP.name: TransCLIP,
        StatA.name: StatA,
        Moon.name: Moon,
        ZLaP.name: ZLaP,
    },
)

__all__ = ["METHODS", "Method"]
