"""The workers of clusters: creation and terraforming, the second look before a deletion, and cleaning up."""
