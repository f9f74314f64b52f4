"""The paper's figures anew, and ours beside them: data, pictures and verdicts."""
