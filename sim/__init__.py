"""servecast: a discrete-event simulator of LLM serving."""

import os

# Vectors and matrices are small here: threads of OpenBLAS would spin while they wait for work, for a tenth of a run's
# CPU time, and sums would depend on how many there are. It looks once, when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
