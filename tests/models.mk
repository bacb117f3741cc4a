# models: one block per module.
