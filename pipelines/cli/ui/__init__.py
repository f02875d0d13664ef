"""The web UI of a home: Dagster's, behind a guard that lets nobody in but the operator."""
