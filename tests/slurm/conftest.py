# SPDX-License-Identifier: Apache-2.0
"""What the tests with a real Slurm share: a cluster of this machine alone, once per file."""
import pytest

import slurm


@pytest.fixture(scope="module")
def cluster():
    try:
        with slurm.cluster() as c:
            yield c
    except slurm.Missing as e:
        pytest.skip(str(e))
