# policy: one block per module.
