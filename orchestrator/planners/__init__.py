"""Decisions that belong to no engine: values in, a decision with its reason out."""
