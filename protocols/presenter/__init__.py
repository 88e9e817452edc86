"""The presenter protocol 0.1: how the broker hands pictures to the program that draws them (presenter.md)."""
