"""Mixtures: one EM loop and the component families that go into it."""
