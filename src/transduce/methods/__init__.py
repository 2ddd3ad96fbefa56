"""The catalogue: one published method (or twin pair) per file, one line each here."""

from transduce.catalogue import Catalogue
from transduce.methods.em_dirichlet import EMDirichlet, HardEMDirichlet
from transduce.methods.em_gaussian import EMGaussianDiagonal, EMGaussianIdentity
from transduce.methods.k_means import HardKMeans, SoftKMeans
from transduce.methods.kl_k_means import KLKMeans
from transduce.methods.method import Method
from transduce.methods.paddle import Paddle
from transduce.methods.zero_shot import ZeroShot

METHODS: Catalogue[type[Method]] = Catalogue(
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
    },
)

__all__ = ["METHODS", "Method"]
