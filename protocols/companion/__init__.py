"""The companion (sprite interaction) protocol 0.1: messages, capabilities, states, engines."""
