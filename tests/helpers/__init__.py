"""What several tests share: references, readers, trainings, a browser. No test is in here."""
