"""The lease protocol: an agent tells that it drives an app, so that the app is not taken for idle and
quit (LP-12).
"""
