"""What several packages share: checks of arguments, files, threads, runs, Gymnasium's ids."""
