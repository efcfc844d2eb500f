"""ProvisioningRequests: capacity for groups of pods, all or nothing, or only checked (docs/design/nodes.md 2-4).

The flow of one loop: `lister` lists requests, `reader` turns each into a `RequestView` (its class, parameters, pod sets
and lifecycle phase). `controller` runs the loop: updates due to the passing of time, `booking` for requests that have
their capacity, `rollback` for scale-ups that must not stay, capacity checks, registered classes. It returns a
`transaction`, which writes `intents` before the scale-up and builds `status_updates` after it.

Rollback: `rollback.recovery` finds what earlier loops left behind, `transaction` what this loop made. Both write how
far back to go before `rollback.rollback` calls the cloud provider. `rollback.cancellation` handles deleted requests.

`booking.consumption` also warns about pods that will not get the capacity they wait for; `views` serves the command
line. Only `status_writer`, `rollback.rollback` and `rollback.cancellation` change anything outside the process;
`controller`, `transaction` and `rollback.recovery` hold the flow; the other modules are pure.
"""
