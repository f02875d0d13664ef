"""What stands between the spiders and the network: fence, blocked, robots, throttle, journal, progress."""
