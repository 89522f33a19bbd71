"""Inverse policy evaluation."""
