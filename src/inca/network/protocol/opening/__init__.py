"""Final messages that are sealed before commit, and opened after it by any `t` trustees (docs/settlement.md)."""
