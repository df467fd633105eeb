"""Claims: who is working on an operation, and for how long others leave it to them."""

from datetime import timedelta

#: How long a claim holds after its holder was last heard of.
CLAIM_LEASE = timedelta(minutes=15)
#: How often an open page of an operation says that it is open, in seconds.
HEARTBEAT_S = 20
#: Who was not heard of for this long is not looking any more.
PRESENT_FOR = timedelta(seconds=60)
