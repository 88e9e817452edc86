"""`make demo`: the main job shown with real processes, and nothing left behind.

`__main__` is the owner: it sets the stage (`stage`), starts the agent (`agent`) and asks whether the app may be
closed.  Every conversation is printed as it goes over the wire (`transcript`), without keys.
"""
