"""Planning for ProvisioningRequests: capacity checks, reservations, placeholder pods and cost shares."""
