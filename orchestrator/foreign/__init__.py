"""Builds by other build systems: what they ran, what it read and wrote, and whether that still holds.

run -> events -> steps -> record -> evidence -> verdict
"""
