"""Parts of objects with an address of their own that do more than an ordinary write: scale, binding, eviction, ….

One module each, called by the handlers with the request understood (`RequestContext`) and the body read.
"""
