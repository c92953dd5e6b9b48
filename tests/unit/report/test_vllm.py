"""The expected lines are those that vllm/benchmarks/serve.py prints for the same numbers."""

import re

from handmade import context_of, two_answers

from sim.metrics.summary import summarise
from sim.report.vllm import vllm_block
from sim.slo import SLO

BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     2         
Failed requests:                         1         
Request rate configured (RPS):           4.00      
Benchmark duration (s):                  1.62      
Total input tokens:                      150       
Total generated tokens:                  7         
Request throughput (req/s):              1.23      
Output token throughput (tok/s):         4.31      
Peak output token throughput (tok/s):    6.00      
Peak concurrent requests:                2.00      
Total token throughput (tok/s):          96.62     
---------------Time to First Token----------------
Mean TTFT (ms):                          625.00    
Median TTFT (ms):                        625.00    
P90 TTFT (ms):                           725.00    
P95 TTFT (ms):                           737.50    
P99 TTFT (ms):                           747.50    
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          291.67    
Median TPOT (ms):                        291.67    
P90 TPOT (ms):                           358.33    
P95 TPOT (ms):                           366.67    
P99 TPOT (ms):                           373.33    
---------------Inter-token Latency----------------
Mean ITL (ms):                           275.00    
Median ITL (ms):                         250.00    
P90 ITL (ms):                            400.00    
P95 ITL (ms):                            450.00    
P99 ITL (ms):                            490.00    
----------------End-to-end Latency----------------
Mean E2EL (ms):                          1312.50   
Median E2EL (ms):                        1312.50   
P90 E2EL (ms):                           1362.50   
P95 E2EL (ms):                           1368.75   
P99 E2EL (ms):                           1373.75   
=================================================="""  # noqa: W291


def result(**changes):
    return summarise(*two_answers(), context_of(**changes)).as_dict()


def test_labels_and_alignment():
    assert vllm_block(result(), request_rate=4.0) == BLOCK


def test_lines_that_depend_on_the_run():
    block = vllm_block(result(slo=SLO.model_validate({"ttft_p95": "600 ms"})), max_concurrency=16)
    assert "Maximum request concurrency:             16        \n" in block
    assert "Request goodput (req/s):                 0.62      \n" in block
    assert "RPS" not in block


def test_no_answer_reads_as_zero():
    empty = result() | {"mean_tpot_ms": float("nan")}
    assert re.search(r"Mean TPOT \(ms\): +0\.00", vllm_block(empty))
