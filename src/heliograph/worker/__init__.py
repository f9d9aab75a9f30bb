"""The control loops on the driver: discover, plan, apply, assign, watch. The data never comes here."""
