"""The page Calibrate. It only calls public functions of `calibration`, and draws with the tools of `sim.ui`."""
