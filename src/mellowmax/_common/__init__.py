"""What several packages share: checks of arguments, files, threads, the numbering of runs."""
