"""The record of losses of a flow: kept on its target, shown by REST.

`loss_log` writes and reads the losses topic. Runs in the driver; imports its clients and steps, never flows or loops.
"""
