"""Facts about accelerators, models, engines and workloads, each with its source."""
