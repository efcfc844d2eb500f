"""Commands of the fleet manager: `fleet evaluate|validate-config` and others."""
