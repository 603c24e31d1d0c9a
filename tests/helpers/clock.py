"""A clock that a test sets."""


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now
