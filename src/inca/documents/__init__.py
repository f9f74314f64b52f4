"""Every file that inca writes or reads: one Struct for each format, its reader, its writer and its digest.

A field stands here once, with its unit and its meaning; `docs/format.md` and the JSON schemas are made of it. This
room knows no rule of privacy: what a number is worth is decided by those who ask (`inca.reporting.verdict`).
"""
