"""Objects of Kubernetes in protobuf, as the JSON value that everything else works on.

One generic decoder and one generic encoder work over a table of field numbers (`fields.json`, recorded from a real
1.34). Request bodies of kubectl come in through `decoding.decode_body`, which are always answered in JSON; the gRPC
protocols of Cluster Autoscaler carry single nodes and pods (`decode_message`, `encoding.encode_message`).
"""
