"""The garbage collector looks seldom while any run is virtual, and as before when none is."""

from __future__ import annotations

import gc

from plimsoll.runtime.virtual_run import VirtualRun


def test_it_looks_seldom_until_the_last_run_has_ended_whichever_began_first():
    usual = gc.get_threshold()
    first, second = VirtualRun(), VirtualRun()
    assert gc.get_threshold()[0] > usual[0]
    first.close()
    first.close()
    assert gc.get_threshold()[0] > usual[0]
    second.close()
    assert gc.get_threshold() == usual


def test_a_collector_that_is_switched_off_stays_off():
    usual = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with VirtualRun():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)
