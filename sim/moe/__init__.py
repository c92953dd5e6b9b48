"""Mixture of experts: which experts the tokens want, where the experts live, and what that loads on each rank.

Everything here is numbers: popularity and placement in, load of ranks and distinct experts out. What these cost is
the business of the cost model.
"""
