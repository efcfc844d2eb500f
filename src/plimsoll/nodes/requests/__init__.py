"""ProvisioningRequests: capacity for groups of pods, all or nothing, or just checked (specs/nodes.md 2-4).

How a request travels: `reading` makes a `Seen` of it (`classes`, `parameters`, `pod_sets`, `states` say what it is,
asks for and waits for; `conditions` and `details` are what it remembers). `desk` is the main flow of a turn: what time
did, then `booking` of those that have their capacity (`consumption` counts who uses it, `arrivals` whether it came),
then `recalling` of growth that has to go, then checks; `class_answers` asks classes of others (`registered_classes`). A
`Session` carries the rest of the turn: `intents` are written before the growth, `answering` says what came of it.

What is taken back: `recalling` finds what earlier turns left, `sessions` what this one made; both go through
`returning`, which writes how far back to go before `rolling_back` calls the cloud. `cancelling` is for requests that
were deleted, `idleness` knows which nodes nobody is on.

`consuming` warns of pods that will not get what they wait for; `verdicts` is what `telling` tells; `plan_answers` and
`reports` are for the command line. Only `writing`, `rolling_back` and `cancelling` change anything; the flow is in
`desk`, `sessions`, `recalling` and `returning`; the rest is pure.
"""
