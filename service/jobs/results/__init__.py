"""Released results of jobs: answers for every k, receipts, transcripts, and the formats they come in."""
