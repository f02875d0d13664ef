"""Ground floor: what every table and every record is. Imports nothing of ours."""
