"""Trust: which labels are probably wrong, audits of them, certificates and sets of classes."""
