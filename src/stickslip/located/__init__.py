"""Runs with located events: steps of full order in given contact modes from event to event, and tolerances.

docs/events.md has the algorithm, its orders and its limits; the numbers in brackets in these modules are
those of its steps:

    state        what is asked for, carried from attempt to attempt, and kept
    functions    event functions, and the search for their zeros on the dense output
    error        the error of a step and the length of the next
    derivative   of steps that end at events
    treatment    impacts, and new modes
    plan         how long the next attempt is
    attempt      one step, tried and judged
    between      where a run begins, and its controller
    dense        between two rows
    asked        the arguments of `simulate`
    run          a run in pieces, from outside of the compiled loop
    output       the solution that comes of it
"""
