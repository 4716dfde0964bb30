"""The control plane: model, profiles, scheduling, simulation, switches, coordination, experiments."""
