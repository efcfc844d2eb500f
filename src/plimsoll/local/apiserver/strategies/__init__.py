"""What differs from kind to kind, behind one interface: decoding, defaults, generation, status, versions, selectors.

`finding.strategy_of` gives the strategy of a served resource. Handlers know no kinds.
"""
