"""What a plan was made from, written down so that it can be made again elsewhere: `plimsoll record` and `replay`.

`snapshots`, `policies` and `memories` are plain JSON of the three things a plan depends on, `hiding` takes names out of
them, `replaying` makes the plan. The container is `journal.recordings`. All of it is pure.
"""
