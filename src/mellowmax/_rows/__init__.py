"""What the operators and policies are made of: functions of independent rows of action values."""
