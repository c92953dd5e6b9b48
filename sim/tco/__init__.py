"""What serving costs its owner: pure functions of prices, power, tokens and time."""
