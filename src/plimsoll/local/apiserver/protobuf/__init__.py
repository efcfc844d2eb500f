"""Request bodies in protobuf, decoded into the JSON value that the rest of the API server works on.

kubectl sends typed creates and access reviews this way and does not fall back to JSON. `decoding.decode_body` is the
door. One generic decoder works over a table of field numbers (`fields.json`, recorded from a real 1.34); answers are
always JSON, so there is no encoder.
"""
