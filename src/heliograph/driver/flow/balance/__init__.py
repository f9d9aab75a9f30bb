"""Decides which task of a flow is to have which partition, by what was measured; `task_supervisor` carries it out.

Used only in the flow's thread.
"""
