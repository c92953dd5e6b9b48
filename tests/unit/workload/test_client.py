"""The client against hand-made schedules; a server answers each request after a fixed time."""

import math

import numpy as np

from sim.request import Request
from sim.workload import Client, Traffic


def requests(*arrivals_s, **fields):
    return [Request(index, 10, 10, arrival_s, **fields) for index, arrival_s in enumerate(arrivals_s)]


def play(traffic, service_s):
    """Return (index, time sent) in order, every request being answered *service_s* after it was sent."""
    client, running, sent = Client(traffic), [], []
    while True:
        ends_s = min((end_s for end_s, _ in running), default=math.inf)
        if client.next_s == ends_s == math.inf:
            return sent
        if client.next_s < ends_s:
            request = client.send()
            sent.append((request.index, request.arrival_s))
            running.append((request.arrival_s + service_s, request))
        else:
            done = min(running, key=lambda entry: (entry[0], entry[1].index))
            running.remove(done)
            client.ended(done[1], done[0])


def test_open_loop_sends_at_the_arrivals():
    assert play(Traffic(requests(0.0, 1.0, 1.0, 5.0)), service_s=10.0) == [(0, 0.0), (1, 1.0), (2, 1.0), (3, 5.0)]


def test_closed_loop_sends_when_a_user_is_free():
    traffic = Traffic(requests(0, 0, 0, 0, 0), slots_open_s=np.zeros(2))
    assert play(traffic, service_s=3.0) == [(0, 0.0), (1, 0.0), (2, 3.0), (3, 3.0), (4, 6.0)]


def test_closed_loop_with_pauses_and_a_ramp():
    traffic = Traffic(requests(0, 0, 0, 0), slots_open_s=np.array([0.0, 2.0]), think_s=np.array([1.0, 1.0, 9.0, 9.0]))
    # User 1: 0-3, pause to 4, then request 2. User 2 begins at 2: 2-5, pause to 6, then request 3.
    assert play(traffic, service_s=3.0) == [(0, 0.0), (1, 2.0), (2, 4.0), (3, 6.0)]


def test_a_limit_in_flight_delays_an_open_loop():
    traffic = Traffic(requests(0.0, 1.0, 2.0, 20.0), slots_open_s=np.zeros(1))
    assert play(traffic, service_s=5.0) == [(0, 0.0), (1, 5.0), (2, 10.0), (3, 20.0)]


def test_more_users_than_requests():
    assert play(Traffic(requests(0, 0), slots_open_s=np.zeros(64)), service_s=1.0) == [(0, 0.0), (1, 0.0)]


def test_a_later_turn_waits_for_the_one_before():
    turns = requests(0.0, 0.0, 4.0, think_s=2.0)
    traffic = Traffic(turns, follow_ups={0: turns[1]})
    assert traffic.openers == [turns[0], turns[2]]
    # Turn 1 is due 2 s after the answer at 5, whatever its recorded arrival.
    assert play(traffic, service_s=5.0) == [(0, 0.0), (2, 4.0), (1, 7.0)]


def test_turns_and_openers_share_the_slots_in_order_of_time():
    turns = requests(0.0, 0.0, 8.0, think_s=2.0)
    traffic = Traffic(turns, slots_open_s=np.zeros(1), follow_ups={0: turns[1]})
    assert play(traffic, service_s=5.0) == [(0, 0.0), (1, 7.0), (2, 12.0)]


def test_nothing_is_due_while_all_slots_are_taken():
    client = Client(Traffic(requests(0, 0), slots_open_s=np.zeros(1)))
    first = client.send()
    assert client.next_s == math.inf
    client.ended(first, 2.5)
    assert client.next_s == 2.5
