"""Restores of files and of datasets, decided and carried out."""
