# frontend
