"""What everything rests on: files, locks, Arrow columns, kernels, services. Nothing here knows what a table holds."""
