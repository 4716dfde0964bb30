"""The live loop: agents and switches in, decisions out."""
