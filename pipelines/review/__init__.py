"""What people judge: tasks for them, their votes, and what they agree on."""
