"""Figures: each is a function from results to a Plotly figure, without a page around it."""
