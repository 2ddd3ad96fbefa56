"""Encoders: pictures and sentences to unit vectors of one space."""
