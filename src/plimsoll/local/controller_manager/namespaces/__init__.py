"""The namespace controller: empties and finalizes namespaces that are being deleted."""
