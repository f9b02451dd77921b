# SPDX-License-Identifier: Apache-2.0
"""A recipe of Spack for the command line and numa_bench, without the daemon unless +daemon. In a repository of your own:

    spack repo create myrepo && mkdir -p myrepo/packages/numaprobe && cp package.py myrepo/packages/numaprobe/
    spack repo add myrepo && spack install numaprobe
"""
from spack.package import *
from spack_repo.builtin.build_systems.meson import MesonPackage


class Numaprobe(MesonPackage):
    """Measures the memory of a NUMA node: latency, bandwidth, contention, first touch, core-to-core transfers."""

    homepage = "https://example.org/numaprobe"
    git = "https://example.org/numaprobe.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("daemon", default=False, description="The daemon numaprobed, which stores runs and serves the REST API")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.8:", type="build")

    depends_on("cjson")
    depends_on("curl")
    depends_on("libmd")
    depends_on("mpi")
    depends_on("numactl", type=("build", "link", "run"))

    with when("+daemon"):
        depends_on("gnutls")
        depends_on("hwloc@2:")
        depends_on("libmicrohttpd")
        depends_on("py-pyyaml", type="build")
        depends_on("sqlite@3.37:")

    def meson_args(self):
        return ["-Dtests=false", f"-Ddaemon={str('+daemon' in self.spec).lower()}"]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        """A quick measurement on one core."""
        Executable(join_path(self.prefix.bin, "numa_bench"))("--np=1", "--size=1M", "--quick")
        Executable(join_path(self.prefix.bin, "numaprobe"))("--version")
