"""A day of a fleet in virtual time: demand, decisions and clusters without any server.

`document` reads what is simulated, `demand` draws the requests, `day` plays them, and `outcome` counts.
"""
