# SPDX-License-Identifier: Apache-2.0
"""ReFrame tests of a node's memory with numaprobe (ReFrame 4). Both run inside the job, and need no site settings:

    reframe -c numaprobe.py -r --performance-report

numa_bench_matrix measures the idle latency from each NUMA node to each other one by numa_bench itself: no daemon is needed.
numaprobe_check reads the verdict of the node's daemon, and measures nothing. Set references per system with
`reference`, as for any performance variable.
"""
import csv
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class numa_bench_matrix(rfm.RunOnlyRegressionTest):
    descr = "Idle memory latency between NUMA nodes"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "numa_bench"
    size = variable(str, value="auto")
    most_disturbed = variable(float, value=0.5)  # share of samples; beyond it other work was on the node
    time_limit = "10m"

    @run_before("run")
    def set_options(self):
        self.executable_opts = ["matrix", "--np=1", "--quick", "--csv", f"--size={self.size}"]

    @sn.deferrable
    def cells(self):
        with open(os.path.join(self.stagedir, str(self.stdout)), encoding="utf-8") as f:
            lines = [line for line in f if "," in line and not line.startswith("#")]
        return [c for c in csv.DictReader(lines) if c["matrix"] == "idle" and c["median_ns"]]

    @sanity_function
    def assert_samples_were_clean(self):
        """A node that computes something else gives no value of its own."""
        cells = self.cells().evaluate()
        # A cell without a mean has no undisturbed sample: its one sample is among the disturbed ones.
        total = sum(int(c["n"] if c["mean_ns"] else 0) + int(c["disturbed"]) for c in cells)
        disturbed = sum(int(c["disturbed"]) for c in cells) / total if total else 1
        return sn.all([
            sn.assert_true(cells, msg="numa_bench printed no value: see the standard error of this test"),
            sn.assert_le(disturbed, self.most_disturbed, msg="{0:.0%} of the samples were disturbed, at most {1:.0%} are accepted")])

    @performance_function("ns")
    def least(self):
        return min(float(c["median_ns"]) for c in self.cells().evaluate())

    @performance_function("ns")
    def worst(self):
        return max(float(c["median_ns"]) for c in self.cells().evaluate())


@rfm.simple_test
class numaprobe_check(rfm.RunOnlyRegressionTest):
    descr = "Verdict of numaprobed on the newest run of this node"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "numaprobe"
    executable_opts = ["check"]
    time_limit = "1m"

    @sanity_function
    def assert_node_is_as_before(self):
        text = sn.extractsingle(r"^NUMAPROBE (OK|WARNING|CRITICAL|UNKNOWN) - (.*)", self.stdout, tag=0).evaluate()
        return sn.assert_found(r"^NUMAPROBE OK - ", self.stdout, msg=text)

    @performance_function("%")
    def worst(self):
        return sn.extractsingle(r"\bworst=(-?[\d.]+)%", self.stdout, 1, float)
