"""The rules of MirrorMaker 2: names, filters, plans, assignment. Pure: decisions in, decisions out."""
