"""Tests of the sessions in `lab/drive`, and some of these sessions."""
