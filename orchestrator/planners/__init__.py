"""Decisions that no engine owns: values in, a decision with its reason out."""
