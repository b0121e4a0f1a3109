"""The words of the house: values that every room shares. No effects, no clock, imports nothing of ours."""
