"""The only folder that imports dagster: thin assets, checks, schedules, resources."""
