"""Decisions on datasets: common snapshots, new ones, and obstacles; and the steps that result."""
